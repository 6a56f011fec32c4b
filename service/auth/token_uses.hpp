// SPDX-License-Identifier: Apache-2.0
// When and from where each token was used last. A use only notes it in memory; run() writes it to
// the store now and then, each token once an hour at most. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "api/types/token.hpp"

namespace vfmgr {

class TokenUses {
  public:
    void note(Token const& token, TokenUse use);
    // Returns the token with its last use, which may be newer than the store's.
    [[nodiscard]] Token with_last_use(Token token) const;
    // Returns the uses that are to be written now, by the tokens' ids. At a stop, all that are not
    // written: Time::max().
    [[nodiscard]] std::map<std::string, TokenUse> take_unwritten(Time now);

  private:
    struct Noted {
        TokenUse last;
        Time written_at{};  // Time{}: never
        bool written = false;
    };
    mutable std::mutex mutex_;
    std::map<std::string, Noted> noted_;  // by the token's id
};

}  // namespace vfmgr
