"""The machinery behind the public modules. Private: nothing in here is promised."""
