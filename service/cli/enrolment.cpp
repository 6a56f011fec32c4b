// SPDX-License-Identifier: Apache-2.0
// What a guest on TCP needs to reach the host, as a file for its VM.
#include "service/cli/enrolment.hpp"

#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

Result<void> print_enrolment(Options const& options, std::string const& name) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_TRY(auto const response, connection.send({.method = "POST",
                                                    .path = "/v1/attachments/" + id + "/enrolment",
                                                    .body = "{}"}));
    // A file for the VM, whatever the format for people is.
    auto as_file = options;
    if (!is_document(as_file.format)) as_file.format = Format::json;
    return print_document(response, as_file);
}

}  // namespace

void add_enrolment(CLI::App& attachment, Session& session) {
    add_named(attachment, session, "enrolment",
              "print what a guest with guest_plane tcp needs to reach the host, with a new token",
              attachment_or_vm, print_enrolment);
}

}  // namespace vfmgr
