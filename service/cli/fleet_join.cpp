// SPDX-License-Identifier: Apache-2.0
// How a host joins a fleet: a token from a replica, and on the host the request with it.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "api/types/fleet.hpp"
#include "api/types/fleet_host.hpp"
#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/fleet.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto tokens_path = "/v1/join-tokens";
constexpr std::chrono::seconds join_timeout{60};
constexpr std::uint16_t host_port = 8470;

// --- tokens, on a replica -------------------------------------------------------------------

struct TokenArguments {
    std::string host;
    std::uint32_t seconds = JoinTokenRequest{}.expires_in_seconds;
};

Table join_token_table(std::vector<JoinTokenView> const& tokens) {
    Table table{{"ID", "HOST", "CREATED-BY", "CREATED", "EXPIRES"}, {}};
    for (auto const& token : tokens)
        table.rows.push_back({cell(token.id), cell(token.host), cell(token.created_by),
                              cell(token.created_at), cell(token.expires_at)});
    return table;
}

Result<void> make_join_token(Options const& options, TokenArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    JoinTokenRequest request;
    if (!arguments.host.empty()) request.host = arguments.host;
    request.expires_in_seconds = arguments.seconds;
    VFMGR_TRY(auto const response,
              connection.send({.method = "POST",
                               .path = tokens_path,
                               .body = to_json_text(JsonWriter::encode(request))}));
    VFMGR_TRY(auto const created, value_of<NewJoinToken>(response));
    print_sentence(fmt::format("join token {} is for one host, expires at {}, and is shown only "
                               "this once",
                               cell(created.view.id), cell(created.view.expires_at)),
                   options);
    auto table = join_token_table({created.view});
    table.columns.emplace_back("TOKEN");
    table.rows.front().push_back(cell(created.token));
    return print(table, cell(created.token) + "\n", response.body, options);
}

Result<void> revoke_join_token(Options const& options, std::string const& id) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_CHECK(
        connection.send({.method = "DELETE", .path = fmt::format("{}/{}", tokens_path, id)}));
    print_sentence(fmt::format("join token {} is revoked", cell(id)), options);
    return {};
}

// --- joining, on the host -------------------------------------------------------------------

struct JoinArguments {
    std::string token;
    std::string token_file;
    std::string name;
    std::string address;
};

std::string own_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return {};
    std::string text(name.data());
    for (auto& letter : text)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return text;
}

// What the host is pinned by.
Result<std::string> own_key(Connection const& local) {
    VFMGR_TRY(auto const view, get<FleetView>(local, "/v1/fleet"));
    if (view.public_key) return *view.public_key;
    return fail(Problem::conflict,
                "this host's API is served on no network, so no fleet reaches it",
                "set enabled = true and an address in [listen.tls] of /etc/vfmgr/vfmgr.toml; then: "
                "systemctl restart vfmgrd");
}

// The replica is known by its CA's hash, which is in the token, before it gets the secret.
Result<http::Response> ask_fleet(HostPort const& replica, JoinToken const& token,
                                 JoinRequest const& request) {
    http::TlsTarget target;
    target.host = replica.host;
    target.port = replica.port;
    target.ca_sha256 = token.ca_sha256;
    auto message = http::make_request("POST", "/v1/hosts", JsonWriter::encode(request));
    VFMGR_TRY(auto response, http::Client(target).send(message, join_timeout));
    return http::success_of(std::move(response));
}

Result<void> join_fleet(Options const& options, std::string const& url,
                        JoinArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const server, server_of(options));
    if (is_remote(server))
        return fail(Problem::invalid_request,
                    fmt::format("{} is another host, and a host joins by itself", server.address),
                    "run this on the host that is to join");
    auto text = arguments.token;
    if (!arguments.token_file.empty()) {
        VFMGR_TRY(text, read_token(arguments.token_file));
    }
    VFMGR_TRY(auto const token, JoinToken::parse(text));
    VFMGR_TRY(auto const replica, parse_url(url));
    VFMGR_TRY(auto const local, Connection::open(options));
    JoinRequest request;
    request.token = text;
    request.name = arguments.name.empty() ? own_name() : arguments.name;
    auto const place =
        parse_host_port(arguments.address.empty() ? request.name : arguments.address, host_port);
    if (!place || !can_be_a_fleet_hosts(request.name))
        return fail(Problem::invalid_request,
                    fmt::format("'{}' can't be this host's name in a fleet", request.name),
                    fmt::format("give --name and --address HOST:PORT; a name {}",
                                rule_of_fleet_host_names));
    request.url = "https://" + to_string(*place);
    VFMGR_TRY(request.public_key, own_key(local));
    VFMGR_TRY(auto const answer, ask_fleet(replica, token, request));
    VFMGR_CHECK(local.send({.method = "PUT", .path = "/v1/fleet", .body = answer.body}));
    print_sentence(fmt::format("this host is {} in its fleet, whose replicas reach it at {}",
                               request.name, request.url),
                   options);
    return {};
}

}  // namespace

void add_fleet_joining(CLI::App& fleet, Session& session) {
    auto const [token, arguments] = add_command(
        fleet, session, "token", "make a token by which one host can join (on a replica)",
        make_join_token, TokenArguments{});
    token->add_option("--for", arguments.host, "only the host that joins by this name")
        ->type_name("NAME");
    token->add_option("--seconds", arguments.seconds,
                      "seconds until it expires, 60 to 604800 (default: 3600)");
    add_command(fleet, session, "tokens", "list join tokens that nobody has used (on a replica)",
                [](Options const& options) {
                    return print_list<JoinTokenView>(options, {.path = tokens_path},
                                                     join_token_table);
                });
    add_named(fleet, session, "revoke", "revoke a join token (on a replica)",
              {"TOKEN", "ID of the join token"}, revoke_join_token);
    auto const [join, url, how] =
        add_named(fleet, session, "join", "have this host join a fleet",
                  {"URL", "of a replica: https://fleet1:8480"}, join_fleet, JoinArguments{});
    auto* const given = join->add_option("--token", how.token, "what vfctl fleet token printed")
                            ->type_name("TOKEN");
    join->add_option("--join-token-file", how.token_file,
                     "file with the token; - for standard input")
        ->type_name("FILE")
        ->excludes(given);
    join->add_option("--name", how.name, "this host's name in the fleet (default: its host name)")
        ->type_name("NAME");
    join->add_option("--address", how.address,
                     "HOST:PORT where replicas reach its API (default: its name, port 8470)")
        ->type_name("ADDRESS");
}

}  // namespace vfmgr
