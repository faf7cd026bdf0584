"""Text for people and terminals: values as TOML, names in printable ASCII, long ones shortened."""


def printable(text: str) -> str:
    """The text in printable ASCII: everything else is escaped, so that no name can garble a terminal."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, length: int = 80) -> str:
    """The text, its middle left out where it is long."""
    return text if len(text) <= length else f"{text[: length - 23]}...{text[-20:]}"


def show(value: object) -> str:
    """A value as it was found, short."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        inner = ["[...]" if isinstance(each, list) else show(each) for each in value[:8]]
        return "[" + ", ".join(inner + ["..."] * (len(value) > 8)) + "]"
    return shorten(toml_value(value))


def toml_value(value: object) -> str:
    """A value in TOML, in ASCII."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(_toml_character(c) for c in value)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    return str(value)


def _toml_character(c: str) -> str:
    """One character of a TOML string."""
    if c in '"\\':
        return f"\\{c}"
    if " " <= c <= "~":
        return c
    return f"\\u{ord(c):04X}" if ord(c) < 1 << 16 else f"\\U{ord(c):08X}"


def is_plain(text: str) -> bool:
    """No control characters, no halves of a surrogate pair (bytes of an argument that are not UTF-8)."""
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text)
