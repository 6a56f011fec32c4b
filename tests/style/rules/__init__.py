# SPDX-License-Identifier: Apache-2.0
"""All rules, in the order in which they are reported."""

from rules import (console, documents, gone, includes, layout, mutants, references, register,
                   sizes, text, tools, words)

RULES = [*includes.RULES, *sizes.RULES, *text.RULES, *words.RULES, *gone.RULES, *layout.RULES,
         *documents.RULES, *references.RULES, *mutants.RULES, *console.RULES, *register.RULES,
         *tools.RULES]
