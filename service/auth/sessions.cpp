// SPDX-License-Identifier: Apache-2.0
#include "service/auth/sessions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vfmgr {
namespace {

Time end_of(Token const& token, std::string const& sha256) {
    auto end = token.expires_at.value_or(Time::max());
    if (token.former && token.former->sha256 == sha256) end = std::min(end, token.former->until);
    return end;
}

void forget_ended(OpenSessions& open, std::map<std::string, Token> const& tokens, Time now) {
    std::erase_if(open, [&](auto const& entry) {
        auto const& session = entry.second;
        bool const revoked =
            !session.token_sha256.empty() && !tokens.contains(session.token_sha256);
        return revoked || session.expires_at <= now;
    });
}

// Ends the principal's oldest session if it has its share.
void end_oldest_beyond_share(OpenSessions& open, std::string const& name) {
    std::size_t own = 0;
    auto oldest = open.end();
    for (auto it = open.begin(); it != open.end(); ++it) {
        if (it->second.name != name) continue;
        ++own;
        if (oldest == open.end() || it->second.number < oldest->second.number) oldest = it;
    }
    if (own >= sessions_each_max) open.erase(oldest);
}

}  // namespace

Result<Session> session_of(Principal const& who, http::Peer const& peer,
                           std::map<std::string, Token> const& tokens, Time now) {
    if (!who.session_sha256.empty())
        return fail(Problem::forbidden, "a session can't begin another",
                    "sign in again with the token or the certificate");
    Session session{who.name, who.token_sha256, now + session_lifetime};
    auto const* const remote = std::get_if<http::TcpPeer>(&peer);
    if (auto const token = tokens.find(who.token_sha256); token != tokens.end())
        session.expires_at = std::min(session.expires_at, end_of(token->second, who.token_sha256));
    else if (who.token_sha256.empty() && remote && remote->certificate)
        session.expires_at = std::min(session.expires_at, remote->certificate->expires_at);
    else
        return fail(Problem::forbidden,
                    fmt::format("{} has neither a token nor a client certificate", who.name),
                    "a user of the unix socket needs no session: leave it out");
    return session;
}

std::shared_ptr<OpenSessions const> Sessions::get() const {
    std::lock_guard const lock(mutex_);
    return open_;
}

Result<std::string> Sessions::begin(Session session, std::map<std::string, Token> const& tokens,
                                    Time now) {
    auto made = make_token();
    bool lost_one = false;
    {
        std::lock_guard const lock(mutex_);
        auto open = *open_;
        forget_ended(open, tokens, now);
        auto const before = open.size();
        end_oldest_beyond_share(open, session.name);
        lost_one = open.size() < before;
        if (open.size() >= sessions_max)
            return fail(Problem::unavailable,
                        fmt::format("all {} sessions of this host are taken", sessions_max),
                        "sign out where you no longer need to be signed in, or wait: a session "
                        "ends after 8 hours");
        session.number = ++begun_;
        open.emplace(std::move(made.sha256), std::move(session));
        open_ = std::make_shared<OpenSessions const>(std::move(open));
    }
    if (lost_one && ended_) ended_();
    return std::move(made.secret);
}

void Sessions::end(std::string const& sha256) {
    {
        std::lock_guard const lock(mutex_);
        auto open = *open_;
        open.erase(sha256);
        open_ = std::make_shared<OpenSessions const>(std::move(open));
    }
    if (ended_) ended_();
}

}  // namespace vfmgr
