// SPDX-License-Identifier: Apache-2.0
#include "service/auth/token_uses.hpp"

#include <utility>

namespace vfmgr {
namespace {

constexpr std::chrono::hours between_writes{1};

}  // namespace

void TokenUses::note(Token const& token, TokenUse use) {
    std::lock_guard const lock(mutex_);
    auto const [it, added] = noted_.try_emplace(token.id);
    auto& noted = it->second;
    if (added && token.last_use) noted.written_at = token.last_use->at;
    noted.last = std::move(use);
    noted.written = false;
}

Token TokenUses::with_last_use(Token token) const {
    std::lock_guard const lock(mutex_);
    if (auto const found = noted_.find(token.id); found != noted_.end())
        token.last_use = found->second.last;
    return token;
}

std::map<std::string, TokenUse> TokenUses::take_unwritten(Time now) {
    std::lock_guard const lock(mutex_);
    std::map<std::string, TokenUse> unwritten;
    for (auto& [id, noted] : noted_) {
        if (noted.written || now - between_writes < noted.written_at) continue;
        noted.written = true;
        noted.written_at = noted.last.at;
        unwritten.emplace(id, noted.last);
    }
    return unwritten;
}

}  // namespace vfmgr
