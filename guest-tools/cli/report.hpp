// SPDX-License-Identifier: Apache-2.0
// Whether this VM is ready for RDMA: `doctor`, and the facts that it read as a bundle for others.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"
#include "guest-tools/cli/options.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr::guest::command {

// Returns the facts in the bundle with that file name; this VM's facts if the name is empty.
[[nodiscard]] Result<checks::Facts> facts_of(std::string const& bundle);

// Returns vf-guest's exit status: 1 when a check fails.
[[nodiscard]] int run_doctor(Options const& options);
// Lists which RDMA port is which netdev and PCI function.
[[nodiscard]] int list_rdma(Options const& options);
// Writes options.bundle_file; "-" is standard output.
[[nodiscard]] int write_bundle(Options const& options);

// vf-guest report: the findings of the last verification of each VF. Runs nothing, queries nothing.

// Returns vf-guest's exit status.
[[nodiscard]] int run_report(Options const& options);

// Terminal output of the commands: answers on standard output, failures on standard error. Any
// thread; lines are never mixed.

// Returns vf-guest's exit status.
int print_error(Error const& error);
void print_line(std::string const& line);
// Prints on standard error what is missing from an answer that is given anyway.
void warn(std::string const& line);
// Indents. Replaces what is not UTF-8, such as a netdev's name.
void print_json(nlohmann::json const& document);
// Prints the document or the text, as the user chose.
void print_answer(Options const& options, nlohmann::json const& document, std::string const& text);
// Prints a document that is JSON already.
void print_document(std::string_view json);
// Print text as it is, except for terminal control; on standard output, and on standard error.
void print_text(std::string_view text);
void warn_text(std::string_view text);
// Returns vf-guest's exit status: an answer that could not be written is a failure.
[[nodiscard]] int ended_with(int status);

}  // namespace vfmgr::guest::command
