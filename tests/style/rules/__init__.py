# SPDX-License-Identifier: Apache-2.0
"""All rules, in the order in which they are reported."""

from rules import documents, includes, layout, mutants, register, sizes, text, tools, words

RULES = [*includes.RULES, *sizes.RULES, *text.RULES, *words.RULES, *layout.RULES,
         *documents.RULES, *mutants.RULES, *register.RULES, *tools.RULES]
