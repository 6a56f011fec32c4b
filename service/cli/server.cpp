// SPDX-License-Identifier: Apache-2.0
#include "service/cli/server.hpp"

#include <array>
#include <cstdlib>

namespace vfmgr {
namespace {

std::string variable(char const* name) {
    auto const* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

ServerChoice environment() {
    ServerChoice choice{
        variable("VFMGR_HOST"),
        {variable("VFMGR_CA_FILE"), variable("VFMGR_FINGERPRINT"), variable("VFMGR_TOKEN_FILE"),
         variable("VFMGR_CLIENT_CERTIFICATE"), variable("VFMGR_CLIENT_KEY")}};
    for (auto const* older : {"VFMGR_URL", "VFMGR_SOCKET"})
        if (choice.host.empty()) choice.host = variable(older);
    return choice;
}

// The server of an address or a context, with the context's credentials.
Result<Server> named(std::string const& host, std::function<Result<Contexts>()> const& contexts) {
    if (!is_context_name(host)) {
        VFMGR_TRY(auto address, parse_address(host));
        return Server{std::move(address)};
    }
    VFMGR_TRY(auto const all, contexts());
    VFMGR_TRY(auto const found, find_context(all, host));
    return Server{found.address, host, found.credentials};
}

Result<Server> chosen_by_nobody(std::function<Result<Contexts>()> const& contexts) {
    VFMGR_TRY(auto const all, contexts());
    return named(all.current.empty() ? std::string(local_context) : all.current,
                 [&all]() -> Result<Contexts> { return all; });
}

// Which certificate to trust is one answer, and who the client is another: neither is put together
// from two ranks.
void add_lower_rank(Credentials& chosen, Credentials const& rank) {
    if (chosen.ca_file.empty() && chosen.fingerprint.empty()) {
        chosen.ca_file = rank.ca_file;
        chosen.fingerprint = rank.fingerprint;
    }
    if (chosen.token_file.empty() && chosen.client_certificate.empty() &&
        chosen.client_key.empty()) {
        chosen.token_file = rank.token_file;
        chosen.client_certificate = rank.client_certificate;
        chosen.client_key = rank.client_key;
    }
}

}  // namespace

bool is_remote(Server const& server) {
    return !server.address.starts_with("unix:");
}

Result<Server> choose_server(ServerChoice const& options, ServerChoice const& environment,
                             std::function<Result<Contexts>()> const& contexts) {
    bool const by_option = !options.host.empty();
    auto const& host = by_option ? options.host : environment.host;
    VFMGR_TRY(auto server, host.empty() ? chosen_by_nobody(contexts) : named(host, contexts));
    auto const ranks =
        by_option ? std::array{options.credentials, server.credentials, environment.credentials}
                  : std::array{options.credentials, environment.credentials, server.credentials};
    server.credentials = {};
    for (auto const& rank : ranks) add_lower_rank(server.credentials, rank);
    return server;
}

Result<Server> server_of(Options const& options) {
    return choose_server({options.host, options.credentials}, environment(),
                         [] { return read_contexts(context_files()); });
}

}  // namespace vfmgr
