"""Names of selection rules: a new rule is one function and one line here."""

from typing import TYPE_CHECKING

from app.tables import Table

if TYPE_CHECKING:
    from app.rl.select import Rule

RULES = Table(
    {
        "single": "app.rl.select:single",
        "adaptive": "app.rl.select:adaptive",
        "fraction": "app.rl.select:top_fraction",
    }
)


def check_rule(name: str) -> None:
    """Refuse a rule that no case can name. Raises CaseError."""
    RULES.check("select.rule", "rule", name)


def find_rule(name: str) -> "Rule":
    """The rule a case names. Raises CaseError for an unknown name."""
    check_rule(name)
    return RULES[name]
