"""Files of hosts: put ``holdfast serve`` before their servers, and take it out again."""
