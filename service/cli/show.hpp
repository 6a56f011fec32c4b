// SPDX-License-Identifier: Apache-2.0
// vfctl's tables: how the API's documents are displayed. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/types/text.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// Built from the items of a list.
[[nodiscard]] Table pf_table(nlohmann::json const& items);
[[nodiscard]] Table vm_table(nlohmann::json const& items);
[[nodiscard]] Table attachment_table(nlohmann::json const& items);
[[nodiscard]] Table operation_table(nlohmann::json const& items);
[[nodiscard]] Table audit_table(nlohmann::json const& items);
[[nodiscard]] Table token_table(nlohmann::json const& items);
// The VFs of PFs: items of /v1/pfs, each with its vfs.
[[nodiscard]] Table vf_table(nlohmann::json const& pfs);
[[nodiscard]] Table history_table(nlohmann::json const& items);
[[nodiscard]] Table test_table(nlohmann::json const& verification);
[[nodiscard]] Table interop_table(nlohmann::json const& clients);
[[nodiscard]] Table step_table(nlohmann::json const& operation);

// Whole pages.
[[nodiscard]] std::string pf_page(nlohmann::json const& pf, Options const& options);
[[nodiscard]] std::string attachment_page(nlohmann::json const& attachment, Options const& options);
[[nodiscard]] std::string verification_page(nlohmann::json const& verification,
                                            Options const& options);
[[nodiscard]] std::string interop_page(nlohmann::json const& clients);
[[nodiscard]] std::string operation_page(nlohmann::json const& operation, Options const& options);
// Formats {"plan": …}: what would be done, and who is affected.
[[nodiscard]] std::string plan_page(nlohmann::json const& dry_run);

// Writes to standard output, as all answers of vfctl; run_vfctl() checks that the write succeeded.
void write_out(std::string_view text, Shown as);
// Prints to standard output: JSON as the API returned it, `page` for people, `table` otherwise.
void print(Table const& table, std::string const& page, std::string const& body,
           Options const& options);
void print(Table const& table, std::string const& body, Options const& options);
// Prints a sentence for the user on standard error; nothing with --quiet.
void print_sentence(std::string const& sentence, Options const& options);

}  // namespace vfmgr
