// SPDX-License-Identifier: Apache-2.0
#include "service/auth/token_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr {
namespace {

using std::chrono::hours;

constexpr hours ends_soon_before{24 * 7};
constexpr hours in_use_for{24 * 30};

}  // namespace

Result<std::optional<Time>> expiry_of(TokenRequest const& request, Time now) {
    using Expiry = std::optional<Time>;
    if (request.never_expires) return Expiry();
    if (request.days) return Expiry(now + hours(24) * *request.days);
    if (request.expires_in_seconds)
        return Expiry(now + std::chrono::seconds(*request.expires_in_seconds));
    if (!request.expires_at) return Expiry(now + token_lifetime_default);
    if (*request.expires_at > now && *request.expires_at <= now + token_lifetime_max)
        return request.expires_at;
    Error error{Problem::invalid_request,
                fmt::format("expires_at {} is not within the next {} days",
                            to_rfc3339(*request.expires_at), token_lifetime_max / hours(24)),
                "give a time in the future, or leave it out"};
    error.violations.push_back({"/expires_at", "is not in the future, or too far in it"});
    return fail(std::move(error));
}

Result<void> check_scopes(Scopes const& scopes, std::vector<std::string> const& nouns) {
    if (!scopes) return {};
    Error error{Problem::invalid_request, "", ""};
    for (std::size_t i = 0; i < scopes->size(); ++i)
        if ((*scopes)[i] != external_holders_scope &&
            std::ranges::find(nouns, (*scopes)[i]) == nouns.end())
            error.violations.push_back({fmt::format("/scopes/{}", i), "is no noun of this API"});
        else if (std::ranges::count(*scopes, (*scopes)[i]) > 1)
            error.violations.push_back({fmt::format("/scopes/{}", i), "is there twice"});
    if (error.violations.empty()) return {};
    error.detail = "the scopes are not nouns of this API, each named once";
    error.remedy =
        fmt::format("choose from {}, {}", fmt::join(nouns, ", "), external_holders_scope);
    return fail(std::move(error));
}

Result<void> may_hand_out(Principal const& who, Scopes const& scopes) {
    if (!who.scopes) return {};
    auto const has = [&](std::string const& scope) {
        return std::ranges::find(*who.scopes, scope) != who.scopes->end();
    };
    if (scopes && std::ranges::all_of(*scopes, has)) return {};
    return fail(Problem::forbidden,
                fmt::format("{} has the scopes {} alone, and can't hand out more", who.name,
                            fmt::join(*who.scopes, ", ")),
                "ask for these scopes or fewer, or use a token without scopes");
}

Result<void> may_name_holders(Principal const& who) {
    bool const may =
        who.scopes ? std::ranges::find(*who.scopes, external_holders_scope) != who.scopes->end()
                   : who.role == Role::admin;
    if (may) return {};
    return fail(
        Problem::forbidden,
        fmt::format("{} may attach VFs to VMs of libvirt, not to external holders", who.name),
        fmt::format("use an admin's role without scopes, or a token whose scopes name {}",
                    external_holders_scope));
}

Result<void> may_adopt(Principal const& who) {
    if (!who.scopes || std::ranges::find(*who.scopes, "attachments") != who.scopes->end())
        return {};
    return fail(Problem::forbidden,
                fmt::format("{} may not make attachments, and an adoption is one", who.name),
                "use a token whose scopes name attachments, too");
}

Token rotated(Token token, std::string sha256, Time now, std::chrono::seconds grace) {
    auto const began = token.rotated_at.value_or(token.created_at);
    auto const ended = token.expires_at.value_or(Time::max());
    token.former.reset();
    if (grace.count() > 0 && now < ended)
        token.former = {token.sha256, std::min(now + grace, ended)};
    if (token.expires_at) token.expires_at = now + (ended - began);
    token.rotated_at = now;
    token.sha256 = std::move(sha256);
    return token;
}

bool ends_soon(Token const& token, Time now) {
    if (!token.expires_at || !token.last_use) return false;
    return *token.expires_at > now && *token.expires_at <= now + ends_soon_before &&
           token.last_use->at > now - in_use_for;
}

}  // namespace vfmgr
