// SPDX-License-Identifier: Apache-2.0
// vfctl's tables: how the API's values are displayed. Pure functions, any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/daemon.hpp"
#include "api/types/event.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/rdma.hpp"
#include "api/types/text.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

[[nodiscard]] Table pf_table(std::vector<PfView> const& pfs);
[[nodiscard]] Table attachment_table(std::vector<Attachment> const& attachments);
[[nodiscard]] Table operation_table(std::vector<Operation> const& operations);
[[nodiscard]] Table audit_table(std::vector<AuditEntry> const& entries);
[[nodiscard]] Table token_table(std::vector<TokenView> const& tokens);
// `pfs` are those of the VFs.
[[nodiscard]] Table vf_table(std::vector<VfView> const& vfs, std::vector<PfView> const& pfs);
[[nodiscard]] Table history_table(std::vector<Event> const& events);
[[nodiscard]] Table event_table(Event const& event);
[[nodiscard]] Table test_table(Verification const& verification);
[[nodiscard]] Table interop_table(InteropWindow const& window);
[[nodiscard]] Table step_table(PlanView const& plan);

// Parts of pages: "key:  value" lines with the values in one column; a table with its title, and a
// list with its title, both empty without rows.
using Fact = std::pair<std::string, std::string>;
[[nodiscard]] std::string facts(std::vector<Fact> const& lines);
[[nodiscard]] std::string section(std::string const& title, Table const& table,
                                  Options const& options);
[[nodiscard]] std::string bullets(std::string const& title, std::vector<std::string> const& lines);

// Whole pages.
[[nodiscard]] std::string pf_page(PfView const& view, Options const& options);
[[nodiscard]] std::string attachment_page(Attachment const& attachment, Options const& options);
[[nodiscard]] std::string verification_page(Verification const& verification,
                                            Options const& options);
[[nodiscard]] std::string interop_page(InteropWindow const& window, Options const& options);
[[nodiscard]] std::string operation_page(Operation const& operation, Options const& options);
// What would be done, and who is affected.
[[nodiscard]] std::string plan_page(PlanView const& plan);

// Formats a VLAN as ID or ID:QOS.
[[nodiscard]] std::string vlan_text(std::optional<Vlan> const& vlan);
// Formats a member of VfSpec.
template <class T>
[[nodiscard]] std::string setting_text(std::optional<T> const& setting) {
    if constexpr (std::is_same_v<T, Vlan>)
        return vlan_text(setting);
    else
        return cell(setting);
}

// Prints the attachments at these paths, as the API has them.
[[nodiscard]] Result<void> print_attachments(Connection const& connection, Options const& options,
                                             std::vector<std::string> const& paths);

// All of vfctl's answers go to standard output here; run_vfctl() checks that the write succeeded.
void write_out(std::string_view text, Shown as);
// Prints to standard output: JSON as the API returned it, or the same as YAML; for people `page`,
// or `table` if they choose its columns. Fails if they choose columns that it lacks.
[[nodiscard]] Result<void> print(Table const& table, std::string const& page,
                                 std::string const& body, Options const& options);
[[nodiscard]] Result<void> print(Table const& table, std::string const& body,
                                 Options const& options);
// Prints a sentence for the user on standard error; nothing with --quiet.
void print_sentence(std::string const& sentence, Options const& options);

// Prints an answer as the API gave it, even members that vfctl does not know.
[[nodiscard]] Result<void> print_document(http::Response const& response, Options const& options);
// Prints an answer as a document, or its value as a page or a table.
template <class T>
[[nodiscard]] Result<void> print_answer(http::Response const& response, Options const& options,
                                        Table (*table)(T const&),
                                        std::string (*page)(T const&, Options const&)) {
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const value, value_of<T>(response));
    return print(table(value), page(value, options), response.body, options);
}
// The same for the whole list that `request` begins, or its first items.
template <class T>
[[nodiscard]] Result<void> print_list(Connection const& connection, Options const& options,
                                      ApiRequest const& request,
                                      Table (*table)(std::vector<T> const&),
                                      std::size_t items_max = SIZE_MAX) {
    VFMGR_TRY(auto const response, connection.list(request, items_max));
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const list, value_of<ItemList<T>>(response));
    return print(table(list.items), response.body, options);
}
template <class T>
[[nodiscard]] Result<void> print_list(Options const& options, ApiRequest const& request,
                                      Table (*table)(std::vector<T> const&),
                                      std::size_t items_max = SIZE_MAX) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return print_list<T>(connection, options, request, table, items_max);
}

}  // namespace vfmgr
