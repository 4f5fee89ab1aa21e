"""Who may import whom, from the syntax trees: also for imports inside functions, which a tool that follows the top level misses."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CORE = sorted((ROOT / "evr1_core").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))
HEAVY = {"torch", "transformers", "vllm", "ray", "torchvision", "tokenizers", "accelerate"}
LIGHT = [
    path
    for path in [*CORE, *PLUGINS]
    if path.relative_to(ROOT).parts[:2]
    in {
        ("evr1_core", "api"),
        ("evr1_core", "registry"),
        ("evr1_core", "config"),
        ("evr1_core", "cli"),
        ("plugins", "rewards"),
        ("plugins", "benchmarks"),
    }
    or path.relative_to(ROOT).parts[1] in ("_torchvision.py", "__init__.py", "__main__.py")
]


def name(path):
    return str(path.relative_to(ROOT))


def module_of(path):
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts[0] = {"plugins": "evr1_plugins"}.get(parts[0], parts[0])
    return [part for part in parts if part != "__init__"], path.name == "__init__.py"


def imported(nodes, path):
    """Dotted names that the import statements among ``nodes`` name, ``from a import b`` as ``a.b``."""
    module, is_package = module_of(path)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level + is_package] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def runtime_top_level(tree):
    """Statements that run when the module is imported: not in functions, not under TYPE_CHECKING."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            waiting.extend(node.orelse)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_imports_no_plugin(path):
    tree = ast.parse(path.read_text("utf-8"))
    assert not [each for each in imported(ast.walk(tree), path) if each.partition(".")[0] == "evr1_plugins"]


@pytest.mark.parametrize("path", PLUGINS, ids=name)
def test_plugins_import_the_api_and_their_own_siblings(path):
    group = ".".join(module_of(path)[0][:2])
    for each in imported(ast.walk(ast.parse(path.read_text("utf-8"))), path):
        top = each.partition(".")[0]
        if top == "evr1_core":
            assert each.startswith("evr1_core.api."), f"{each}: of the core, plugins import evr1_core.api alone"
        if top == "evr1_plugins":
            assert each.startswith(f"{group}._"), f"{each}: plugins share only private siblings of their own group"


@pytest.mark.parametrize("path", LIGHT, ids=name)
def test_nothing_heavy_at_the_top_of_light_modules(path):
    if name(path).startswith("evr1_core/api/tensors/"):
        return
    tree = ast.parse(path.read_text("utf-8"))
    heavy = [each for each in imported(runtime_top_level(tree), path) if each.partition(".")[0] in HEAVY]
    assert not heavy, f"{heavy}: import it where it is used"


def test_the_linter_knows_every_part_of_the_core():
    """A new package under evr1_core must be forbidden to plugins and to the API by name."""
    parts = {f"evr1_core.{path.name}" for path in (ROOT / "evr1_core").iterdir() if (path / "__init__.py").exists()} - {
        "evr1_core.api"
    }
    for contract in PROJECT["tool"]["importlinter"]["contracts"]:
        if contract["name"] in ("Of the core, plugins import the API alone", "The API stands alone"):
            assert set(contract["forbidden_modules"]) == parts, contract["name"]
