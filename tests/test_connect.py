"""Options of ``connect``: checked when it is called, refused by name and value."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast import ValidationError
from holdfast.testing import Peer

connect: Any = holdfast.connect


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeouts": 30}, "must be a holdfast.Timeouts, such as holdfast.Timeouts(request=30)"),
        ({"tools": ["echo"]}, "tools=['echo']: must be a holdfast.ToolPolicy"),
        ({"cache": True}, "cache=True: must be a holdfast.Cache"),
        ({"handlers": print}, "must be a holdfast.Handlers"),
        ({"identity": "me"}, "identity='me': must be a holdfast.Identity"),
        ({"name": 7}, "name=7: must be a string"),
        ({"protocol": 2025}, "protocol=2025: must be a string"),
        ({"when_down": "later"}, "when_down='later': must be 'fail' or 'wait'"),
    ],
)  # fmt: skip
def test_an_option_of_a_wrong_type_is_refused_by_name_and_value(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "suggestion"),
    [
        ({"timeout": 5}, "did you mean timeouts=Timeouts(request=5)?"),
        ({"initialize_timeout": 2.5}, "did you mean timeouts=Timeouts(handshake=2.5)?"),
        ({"client_info": {"name": "me"}}, "did you mean identity=Identity(name=…, version=…)?"),
        ({"capabilities": {}}, "did you mean identity=Identity(capabilities=…)?"),
        ({"handshake": 3}, "did you mean timeouts=Timeouts(handshake=3)?"),
        ({"frame_bytes": 10}, "did you mean limits=Limits(frame_bytes=10)?"),
        ({"sampling": print}, "did you mean handlers=Handlers(sampling=…)?"),
        ({"header": {}}, "did you mean headers=…?"),
        ({"obserability": None}, "did you mean observability=…?"),
        ({"timout": 1}, "did you mean timeouts=Timeouts(request=1)?"),
        ({"requst": 3}, "did you mean timeouts=Timeouts(request=3)?"),
        ({"retries": 3}, "did you mean backoff=Backoff(attempts=3)?"),
        ({"token": "s3cret"}, "did you mean the option auth, with holdfast.Bearer(…)?"),
        ({"on_log": print}, "did you mean client.on_log(…)?"),
        ({"logging_callback": print}, "did you mean client.on_log(…)?"),
        ({"log_handler": print}, "did you mean client.on_log(…)?"),
        ({"progress_handler": print}, "did you mean handlers=Handlers(progress=…)?"),
        ({"request_timeout": 3}, "did you mean timeouts=Timeouts(request=3)?"),
    ],
)
def test_a_near_miss_is_answered_with_the_right_form(
    options: dict[str, Any], suggestion: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), **options)
    (name,) = options
    assert str(caught.value).startswith(f"{name}=…: not an option of connect")
    assert suggestion in str(caught.value)


def test_an_unknown_option_without_a_near_name_is_refused_without_its_value() -> None:
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), zzz="s3cret")
    assert str(caught.value) == "zzz=…: not an option of connect"
