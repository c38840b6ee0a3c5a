"""Positions in YAML, by PyYAML's marks. `read_yaml` has read the text before, within its bounds."""

from __future__ import annotations

from typing import Any

from holdfast.hosts.nodes import DocumentMember, DocumentNode, NodeTree


def yaml_tree(text: str) -> NodeTree:
    """Return the values of a YAML text by their places."""
    import yaml

    # The one in Python: its marks count characters on every build.
    return NodeTree(_node(yaml, text, yaml.compose(text, Loader=yaml.SafeLoader)))


def _node(yaml: Any, text: str, raw: Any) -> DocumentNode:
    if raw is None:
        return DocumentNode(0, 0, "block", {})
    node = DocumentNode(raw.start_mark.index, raw.end_mark.index)
    if isinstance(raw, yaml.MappingNode):
        node.style = "flow" if raw.flow_style else "block"
        node.members = {
            key.value: DocumentMember(key.start_mark.index, _node(yaml, text, value))
            for key, value in raw.value
        }
        _trim(node, [member.node for member in node.members.values()])
    elif isinstance(raw, yaml.SequenceNode):
        node.style = "flow" if raw.flow_style else "block"
        node.items = [_node(yaml, text, item) for item in raw.value]
        _trim(node, node.items)
    elif raw.style in ("|", ">"):
        # Its mark stands behind the line breaks, which are those of the lines below.
        node.end = node.start + len(text[node.start : node.end].rstrip())
    return node


def _trim(node: DocumentNode, inside: list[DocumentNode]) -> None:
    """Let a block end with its last value: its mark stands at the next token, lines below."""
    if node.style == "block" and inside:
        node.end = inside[-1].end
