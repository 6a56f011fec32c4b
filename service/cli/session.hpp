// SPDX-License-Identifier: Apache-2.0
// One run of vfctl: the parsed command line and the command to run. Owned by main; one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/problem.hpp"

namespace CLI {
class App;
}

namespace vfmgr {

// How vfctl and a vfmgrd that is not reached by a unix socket authenticate; members may be empty.
struct Credentials {
    // Which certificate of the server to trust.
    std::string ca_file{};
    std::string fingerprint{};
    // Who the client is. A token decides if there are both.
    std::string token_file{};
    std::string client_certificate{};  // these two are files, in PEM
    std::string client_key{};
    bool operator==(Credentials const&) const = default;
};

enum class Format { table, json, yaml, csv, name };

struct Options {
    // As given on the command line; server_of() adds the environment and contexts.
    std::string host{};
    Credentials credentials{};
    Format format = Format::table;
    std::vector<std::string> columns{};  // empty: all of a table, or a page
    bool no_headers = false;
    bool dry_run = false;
    bool no_wait = false;
    bool quiet = false;
    bool verbose = false;  // every figure of a test, in tables
};

struct Session {
    Options options;
    std::function<Result<int>()> run;  // set by the command that the user chose; its exit code
};

// For writes that the API can't plan without executing them.
[[nodiscard]] Result<void> refuse_dry_run(Options const& options);

// Adds everything to the tree.
void add_all(CLI::App& app, Session& session);
// Adds commands until `command` is among them, and everything if there is none of that name: a
// third of a short run's time would go to commands that nobody asked for.
void add_until(CLI::App& app, Session& session, std::string const& command);
// Each adds its commands to the tree. `session` outlives the tree.
void add_global_options(CLI::App& app, Session& session);
void add_pf_commands(CLI::App& app, Session& session);
void add_desired_commands(CLI::App& app, Session& session);
void add_firmware_commands(CLI::App& app, Session& session);
void add_network_commands(CLI::App& app, Session& session);
void add_ib_commands(CLI::App& app, Session& session);
void add_pool_commands(CLI::App& app, Session& session);
void add_tenant_commands(CLI::App& app, Session& session);
void add_identity_commands(CLI::App& app, Session& session);
void add_fleet_commands(CLI::App& app, Session& session);
void add_store_commands(CLI::App& app, Session& session);
void add_reservation_commands(CLI::App& app, Session& session);
void add_vf_commands(CLI::App& app, Session& session);
void add_vm_commands(CLI::App& app, Session& session);
void add_without_vfs_command(CLI::App& vm, Session& session);
void add_adopt_command(CLI::App& attachment, Session& session);
void add_attachment_commands(CLI::App& app, Session& session);
void add_interop_commands(CLI::App& app, Session& session);
void add_operation_commands(CLI::App& app, Session& session);
void add_events_command(CLI::App& app, Session& session);
void add_top_command(CLI::App& app, Session& session);
void add_context_commands(CLI::App& app, Session& session);
void add_audit_command(CLI::App& app, Session& session);
void add_token_commands(CLI::App& app, Session& session);
void add_rdma_commands(CLI::App& app, Session& session);
void add_rdma_link_commands(CLI::App& rdma, Session& session);
void add_drained_command(CLI::App& app, Session& session);
void add_doctor_commands(CLI::App& app, Session& session);
void add_topology_command(CLI::App& app, Session& session);
void add_fleet_host_commands(CLI::App& app, Session& session);
void add_query_commands(CLI::App& app, Session& session);

}  // namespace vfmgr
