"""What has asked this process to stop, for what comes before any keeper: a file that is read."""

_asked: list[str] = []


def ask(name: str) -> None:
    """A signal came."""
    _asked.append(name)


def asked() -> bool:
    """Whether one has come."""
    return bool(_asked)


def forget() -> None:
    """The run that was asked is over."""
    _asked.clear()
