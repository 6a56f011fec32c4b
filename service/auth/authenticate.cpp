// SPDX-License-Identifier: Apache-2.0
#include "service/auth/authenticate.hpp"

#include <fmt/format.h>
#include <grp.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "api/types/fleet.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

constexpr char const* make_a_token = "create one on the host: vfctl token create";
constexpr std::string_view certificate_prefix = "cert:";

}  // namespace

Result<Principal> of_tenant(Principal who, std::optional<std::string> const& name,
                            Tenants const& tenants) {
    if (!name) return who;
    auto const found = tenants.find(*name);
    if (found == tenants.end())
        return fail(Problem::forbidden,
                    fmt::format("{} is of tenant {}, which does not exist", who.name, *name),
                    fmt::format("have an admin make it: vfctl tenant set {} -f FILE", *name));
    who.tenant = std::make_shared<DesiredTenant const>(found->second);
    return who;
}

namespace {

Result<Principal> by_token(std::string const& sha256, std::map<std::string, Token> const& tokens,
                           Time now, Tenants const& tenants) {
    auto const found = tokens.find(sha256);
    auto const role = found == tokens.end() ? std::nullopt : enum_value<Role>(found->second.role);
    if (!role)
        return fail(Problem::unauthorized, "unknown token: it is wrong or has been revoked",
                    make_a_token);
    auto const& token = found->second;
    if (token.expires_at && *token.expires_at <= now)
        return fail(Problem::unauthorized,
                    fmt::format("token {} expired at {}", token.id, to_rfc3339(*token.expires_at)),
                    make_a_token);
    bool const is_former = token.former && token.former->sha256 == sha256;
    if (is_former && token.former->until <= now)
        return fail(
            Problem::unauthorized,
            fmt::format("this secret of token {} was replaced, and ended at {}", token.id,
                        to_rfc3339(token.former->until)),
            "use the new one, or have an admin make another: vfctl token rotate " + token.id);
    return of_tenant({"token:" + token.id, *role, token.scopes, sha256}, token.tenant, tenants);
}

Result<Principal> by_credentials(http::UnixPeer const& peer, RoleRules const& rules) {
    auto const name = fmt::format("uid:{}", peer.uid);
    if (peer.uid == 0) return Principal{name, Role::admin};
    std::optional<Role> role;
    auto const grant = [&](std::map<std::uint32_t, Role> const& roles, std::uint32_t id) {
        if (auto const it = roles.find(id); it != roles.end())
            role = std::max(role.value_or(it->second), it->second);
    };
    grant(rules.uids, peer.uid);
    grant(rules.gids, peer.gid);
    for (auto const group : peer.groups) grant(rules.gids, group);
    if (!role)
        return fail(Problem::forbidden, fmt::format("the user with uid {} has no role", peer.uid),
                    fmt::format("add the user to the group vfmgr and log in again, or give the uid "
                                "or a group a role in {}: [roles.uids], [roles.groups]",
                                rules.program.settings));
    return Principal{name, *role};
}

Error no_role(std::vector<std::string> const& names, Program const& program) {
    if (names.empty())
        return {
            Problem::forbidden, "the client certificate has no name that counts",
            "issue one with a URI or DNS name, or one common name, of visible ASCII characters"};
    return {Problem::forbidden, fmt::format("the client certificate of {} has no role", names[0]),
            fmt::format("give it one in {}: [tls.clients] \"{}\" = \"viewer\"; then: {}",
                        program.settings, names[0], reload_command(program))};
}

// What callers are judged by.
struct Judged {
    RoleRules const& rules;
    std::map<std::string, Token> const& tokens;
    Time now;
    Tenants const& tenants;
    OpenSessions const& sessions;
    FleetTrust const* fleet;  // null: this host is in none
};

Result<Principal> by_replica(http::PeerCertificate const& shown, FleetTrust const& fleet) {
    for (auto const& uri : shown.names)
        if (auto const name = parse_replica_uri(uri); name && name->fleet == fleet.fleet) {
            Principal who{"fleet:" + name->replica, Role::admin};
            who.fleet_replica = name->replica;
            return who;
        }
    return fail(Problem::forbidden,
                fmt::format("the client certificate{} is of the fleet's CA, but of no replica of "
                            "fleet {}",
                            shown.names.empty() ? "" : " of " + shown.names[0], fleet.fleet),
                fmt::format("its URI must be {}", to_uri({fleet.fleet, "NAME"})));
}

Result<Principal> by_certificate(http::PeerCertificate const& shown, Judged const& judged) {
    auto const& [rules, tokens, now, tenants, sessions, fleet] = judged;
    if (shown.expires_at <= now)  // since the handshake
        return fail(
            Problem::unauthorized,
            fmt::format("the client certificate expired at {}", to_rfc3339(shown.expires_at)),
            "renew it and connect again");
    if (fleet && !shown.authority.empty() && shown.authority == fleet->authority)
        return by_replica(shown, *fleet);
    auto found = rules.clients.end();
    for (auto const& name : shown.names) {
        auto const rule = rules.clients.find(name);
        if (rule == rules.clients.end()) continue;
        if (found != rules.clients.end() && found->second != rule->second)
            return fail(Problem::forbidden,
                        fmt::format("the client certificate is of {} and of {}, which have "
                                    "different {}",
                                    found->first, name,
                                    found->second.role == rule->second.role ? "tenants" : "roles"),
                        fmt::format("leave one of them in {}, [tls.clients]; then: {}",
                                    rules.program.settings, reload_command(rules.program)));
        if (found == rules.clients.end()) found = rule;
    }
    if (found == rules.clients.end()) return fail(no_role(shown.names, rules.program));
    auto const& [name, client] = *found;
    return of_tenant({std::string(certificate_prefix) + name, client.role}, client.tenant, tenants);
}

Result<Principal> by_peer(http::Peer const& peer, Judged const& judged) {
    if (auto const* local = std::get_if<http::UnixPeer>(&peer))
        return by_credentials(*local, judged.rules);
    auto const* const remote = std::get_if<http::TcpPeer>(&peer);
    if (remote && remote->certificate) return by_certificate(*remote->certificate, judged);
    return fail(Problem::unauthorized, "this request has no token, and no client certificate",
                make_a_token);
}

// The principal as it is now: a session is never more than what began it.
Result<Principal> by_session(std::string const& sha256, http::Peer const& peer,
                             Judged const& judged) {
    constexpr auto sign_in = "sign in again";
    auto const found = judged.sessions.find(sha256);
    if (found == judged.sessions.end())
        return fail(Problem::unauthorized, "this session has ended", sign_in);
    auto const& session = found->second;
    if (session.expires_at <= judged.now)
        return fail(Problem::unauthorized,
                    fmt::format("the session of {} ended at {}", session.name,
                                to_rfc3339(session.expires_at)),
                    sign_in);
    auto who = session.token_sha256.empty()
                   ? by_peer(peer, judged)
                   : by_token(session.token_sha256, judged.tokens, judged.now, judged.tenants);
    if (!who || who->name != session.name)
        return fail(
            Problem::unauthorized,
            fmt::format("the session of {} ended: {}", session.name,
                        who ? "this connection shows another certificate" : who.error().detail),
            sign_in);
    who->session_sha256 = sha256;
    return who;
}

Result<Principal> by_header(std::string_view authorization, http::Peer const& peer,
                            Judged const& judged) {
    auto const secret = http::bearer_token(authorization);
    if (secret.empty())
        return fail(Problem::unauthorized,
                    "the Authorization header is not of the form 'Bearer TOKEN' with a vfmgr token",
                    make_a_token);
    auto const sha256 = token_sha256(secret);
    if (judged.sessions.contains(sha256)) return by_session(sha256, peer, judged);
    return by_token(sha256, judged.tokens, judged.now, judged.tenants);
}

// Retries with a larger buffer while the entry (a group with many members) does not fit.
std::optional<std::uint32_t> group_id(std::string const& name) {
    std::vector<char> buffer(4096);
    group entry{};
    group* found = nullptr;
    while (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == ERANGE &&
           buffer.size() < 16 * 1024 * 1024)
        buffer.resize(buffer.size() * 4);
    if (!found) return std::nullopt;
    return found->gr_gid;
}

}  // namespace

ResolvedRoles resolve_roles(std::map<std::string, Role> const& groups,
                            std::map<std::uint32_t, Role> const& uids,
                            std::map<std::string, ClientRole> const& clients) {
    ResolvedRoles resolved;
    resolved.rules.uids = uids;
    resolved.rules.clients = clients;
    for (auto const& [name, role] : groups) {
        auto const gid = group_id(name);
        if (!gid) {
            resolved.unknown_groups.push_back(name);
            continue;
        }
        auto const [it, added] = resolved.rules.gids.emplace(*gid, role);
        if (!added) it->second = std::max(it->second, role);
    }
    return resolved;
}

std::string to_string(ClientRole const& client) {
    std::string const role(enum_name(client.role));
    return client.tenant ? fmt::format("{} of tenant {}", role, *client.tenant) : role;
}

NewToken make_token() {
    NewToken token{"vfm_" + random_hex(32), random_hex(4), {}};
    token.sha256 = token_sha256(token.secret);
    return token;
}

std::string token_sha256(std::string_view secret) {
    return verify::digest_hex(secret);
}

Result<Principal> authenticate(http::Peer const& peer,
                               std::map<std::string, std::string> const& headers,
                               RoleRules const& rules, std::map<std::string, Token> const& tokens,
                               Time now, Tenants const& tenants, OpenSessions const& sessions,
                               FleetTrust const* fleet) {
    Judged const judged{rules, tokens, now, tenants, sessions, fleet};
    if (std::holds_alternative<http::VsockPeer>(peer))
        return fail(Problem::forbidden, "a VM has no access to this API",
                    "use it from the host, or over TLS with a token");
    if (auto const header = headers.find("authorization"); header != headers.end())
        return by_header(header->second, peer, judged);
    return by_peer(peer, judged);
}

bool still_holds(Principal const& who, http::Peer const& peer, RoleRules const& rules,
                 std::map<std::string, Token> const& tokens, Time now, Tenants const& tenants,
                 OpenSessions const& sessions, FleetTrust const* fleet) {
    Judged const judged{rules, tokens, now, tenants, sessions, fleet};
    auto const again = !who.session_sha256.empty() ? by_session(who.session_sha256, peer, judged)
                       : who.token_sha256.empty()
                           ? by_peer(peer, judged)
                           : by_token(who.token_sha256, tokens, now, tenants);
    if (!again || again->name != who.name || again->role < who.role) return false;
    if (!again->tenant || !who.tenant) return again->tenant == who.tenant;
    return *again->tenant == *who.tenant;
}

}  // namespace vfmgr
