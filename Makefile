# make demo: tables, figures and report in minutes on two cores. make test: everything that CI checks.
# Both set up .venv first where it is not there or not current. Another Python (3.11 or later): make demo PYTHON=...
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo report test lint format plan results clean

PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do command -v $$name && break; done)
CORES ?= 2
SCALE ?= demo
OPTIONS ?=
BIN := .venv/bin
SNAKEMAKE := $(BIN)/snakemake --profile workflow/profiles/local --cores $(CORES) --configfile
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt
BRIEF := { grep --line-buffered -E '^ *(Downloading|Installing)' || true; } | cut -c1-100

help: ## these lines
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

demo: .venv/.ready ## the demo scale from data to report, on two cores without network
	$(SNAKEMAKE) config/demo.yaml --quiet=rules $(OPTIONS)
	@$(SNAKEMAKE) config/demo.yaml $(OPTIONS) --report results/demo/report.html --quiet
	@for table in glee/table3 lpt/table8 ppt/table4 across/table1; do printf '\n%s\n\n' "$$table"; cat results/demo/tables/$$table.md; done
	@echo; echo "Report:  results/demo/report.html"; echo "Tables:  results/demo/tables/   Figures: results/demo/figures/"

# Base64 adds a third, and what is around the pages 6 MB: 32 MB of them make an HTML file of about 50.
report: .venv/.ready ## the report of a finished SCALE: .html, or .zip where that would pass 50 MB
	@size=$$(find results/$(SCALE)/tables results/$(SCALE)/figures -name '*.html' -exec cat {} + | wc -c); \
	file=results/$(SCALE)/report.$$([ $$size -gt 32000000 ] && echo zip || echo html); \
	$(SNAKEMAKE) config/$(SCALE).yaml $(OPTIONS) --report $$file --quiet && echo "Report:  $$file"

test: lint ## linters, then every test; those without their card or SLURM say so
	$(BIN)/python -m pytest -rs -n $$(($(CORES) + 1)) --dist loadfile --no-loadscope-reorder  # one waits while others compute

lint: .venv/.ready ## ruff, snakefmt and ty, changing nothing
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/snakefmt --check --compact-diff Snakefile workflow/rules
	$(BIN)/ty check --quiet --python .venv

format: .venv/.ready ## the same, mending what they can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/rules

plan: .venv/.ready ## what the paper scale would run, download and cost
	$(BIN)/tailprompt plan

results: .venv/.ready ## the numbers of README and docs, from the runs that ship
	$(BIN)/python -m docs --cores $(CORES)

clean: ## .venv and what tools cached; results stay
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests -name __pycache__ -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tailprompt needs Python 3.11 or later; say make PYTHON=..."; exit 1; }
	@echo "Setting up .venv with $(PYTHON); torch is the long part."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) torch torchvision | $(BRIEF)
	@$(INSTALL) -e '.[test]' | $(BRIEF)
	@$(BIN)/python -c 'import snakemake, tailprompt, timm, torch, transformers'
	@touch $@
