// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

struct CreateArguments {
    std::string role = "viewer";
    std::string description;
    std::vector<std::string> scopes;
    std::optional<std::uint32_t> days;
    std::string expires_at;
    bool never_expires = false;
    std::string tenant;
};

// Revokes a token whose secret could not be delivered: it must not stay valid.
Result<void> revoke_lost(Connection const& connection, std::string const& id, Error error) {
    auto const revoked = connection.send({.method = "DELETE", .path = "/v1/tokens/" + id});
    error.detail = fmt::format("the secret of token {} is lost: {}", id, error.detail);
    error.remedy = revoked
                       ? "the token is revoked: create another, and write it where there is room"
                       : "revoke it, and create another: vfctl token revoke " + id;
    return fail(std::move(error));
}

Table new_token_table(NewTokenView const& created) {
    auto table = token_table({created.view});
    table.columns.emplace_back("TOKEN");
    table.rows.front().push_back(cell(created.token));
    return table;
}

// The answer is the only one with the secret, so output without it is refused beforehand.
Result<void> check_shows_secret(Options const& options) {
    VFMGR_TRY(auto const chosen, with_columns(new_token_table({}), options.columns));
    if (options.format != Format::name && std::ranges::count(chosen.columns, "TOKEN") > 0)
        return {};
    return fail(
        Problem::invalid_request, "the output would not contain the token's secret",
        options.format == Format::name ? "leave -o name out" : "choose the column token, too");
}

nlohmann::json body_of(CreateArguments const& arguments) {
    nlohmann::json body{{"role", arguments.role}};
    if (!arguments.description.empty()) body["description"] = arguments.description;
    if (!arguments.scopes.empty()) body["scopes"] = arguments.scopes;
    if (arguments.days) body["days"] = *arguments.days;
    if (!arguments.expires_at.empty()) body["expires_at"] = arguments.expires_at;
    if (arguments.never_expires) body["never_expires"] = true;
    if (!arguments.tenant.empty()) body["tenant"] = arguments.tenant;
    return body;
}

std::string ends(TokenView const& token) {
    return token.expires_at ? "expires at " + cell(token.expires_at) : "never expires";
}

// Prints only the secret to standard output, so that it can be redirected to a file.
Result<void> create(Options const& options, CreateArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(check_shows_secret(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response,
              connection.send(
                  {.method = "POST", .path = "/v1/tokens", .body = body_of(arguments).dump()}));
    VFMGR_TRY(auto const created, value_of<NewTokenView>(response));
    auto const& token = created.view;
    print_sentence(fmt::format("token {} has role {} and {}; its secret is shown only this once",
                               cell(token.id), cell(token.role), ends(token)),
                   options);
    VFMGR_CHECK(
        print(new_token_table(created), cell(created.token) + "\n", response.body, options));
    if (auto const written = flush_output(); !written)
        return revoke_lost(connection, token.id, written.error());
    return {};
}

Result<void> rotate(Options const& options, std::string const& id, std::uint32_t const& grace) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(check_shows_secret(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response,
              connection.send({.method = "POST",
                               .path = "/v1/tokens/" + id + "/rotate",
                               .body = nlohmann::json{{"grace_seconds", grace}}.dump()}));
    VFMGR_TRY(auto const changed, value_of<NewTokenView>(response));
    print_sentence(fmt::format("token {} has another secret and {}; the secret is shown only this "
                               "once",
                               cell(changed.view.id), ends(changed.view)),
                   options);
    VFMGR_CHECK(
        print(new_token_table(changed), cell(changed.token) + "\n", response.body, options));
    auto written = flush_output();
    if (written) return {};
    written.error().detail =
        fmt::format("the new secret of token {} is lost: {}", id, written.error().detail);
    written.error().remedy = "write it where there is room: vfctl token rotate " + id;
    return written;
}

Result<void> list_tokens(Options const& options) {
    return print_list<TokenView>(options, {.path = "/v1/tokens"}, token_table);
}

Result<void> revoke(Options const& options, std::string const& id) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_CHECK(connection.send({.method = "DELETE", .path = "/v1/tokens/" + id}));
    print_sentence(fmt::format("token {} is revoked", id), options);
    return {};
}

}  // namespace

void add_token_commands(CLI::App& app, Session& session) {
    auto* const token = add_group(app, "token", "manage tokens for the API over TLS");
    auto const [create_command, arguments] =
        add_command(*token, session, "create", "create a token", create, CreateArguments{});
    create_command->add_option("--role", arguments.role, "what its owner may do")
        ->check(one_of<Role>());
    create_command->add_option("--description,--name", arguments.description,
                               "whom or what the token is for");
    create_command->add_option("--scope", arguments.scopes,
                               "noun of the API that it may use, such as attachments, or "
                               "external-holders; may be repeated (default: all that its role "
                               "may)");
    auto* const days =
        create_command->add_option("--days", arguments.days, "days until it expires (default: 90)");
    auto* const time = create_command->add_option("--expires-at", arguments.expires_at,
                                                  "time when it expires: 2026-01-31T12:00:00Z");
    auto* const never =
        create_command->add_flag("--never-expires", arguments.never_expires, "it does not expire");
    days->excludes(time)->excludes(never);
    time->excludes(never);
    create_command
        ->add_option("--tenant", arguments.tenant,
                     "it may do what this tenant may; not with role admin")
        ->type_name("TENANT");
    add_command(*token, session, "list", "list all tokens, without their secrets", list_tokens);
    auto const [rotate_command, id, grace] =
        add_named(*token, session, "rotate", "give a token another secret",
                  {"TOKEN", "ID of the token"}, rotate, std::uint32_t{0});
    rotate_command->add_option("--grace", grace,
                               "seconds for which its present secret stays valid (default: 0)");
    add_named(*token, session, "revoke", "revoke a token", {"TOKEN", "ID of the token"}, revoke);
}

}  // namespace vfmgr
