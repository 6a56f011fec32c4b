// SPDX-License-Identifier: Apache-2.0
// Answers from what is published, each made once for each published view: its text, the ETag that
// names it, and the text that is compressed for clients that take it so. Made at the first request,
// so nobody pays for views that nobody reads; all are forgotten with their view. One thread.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "service/routes/router.hpp"

namespace vfmgr {

// For each principal and view, of answers that it was the first to ask for: beyond these, they are
// made anew, and not compressed. So whoever asks for many different lists takes nothing from
// others.
inline constexpr std::size_t kept_bytes_each_max = 4 * 1024 * 1024;
inline constexpr std::size_t compressed_bytes_each_max = 2 * 1024 * 1024;
inline constexpr std::size_t kept_bytes_max = 64 * 1024 * 1024;  // of all principals
inline constexpr std::size_t compressed_from_bytes = 1024;  // a smaller text fits into a packet

class KeptAnswers {
  public:
    [[nodiscard]] http::Response answer(Published const& route, Call const& call,
                                        Snapshot const& now);

  private:
    struct Kept {
        std::map<std::string, std::string> headers;
        http::Frame text;
        http::Frame compressed{};
    };
    struct Share {
        std::size_t kept = 0;
        std::size_t compressed = 0;
    };
    using Key = std::pair<std::string, std::string>;  // tenant, target

    void renew(Snapshot const& now);
    [[nodiscard]] Result<Kept> make(Published const& route, Call const& call,
                                    std::shared_ptr<DesiredTenant const> const& tenant);
    [[nodiscard]] bool has_room(Share const& share, Kept const& made) const;
    [[nodiscard]] http::Response response_of(Kept& kept, Call const& call);

    Snapshot view_;
    std::map<Key, Kept> kept_;
    std::size_t bytes_ = 0;
    std::map<std::string, Share, std::less<>> shares_;  // by principal
    std::map<std::string, Snapshot> seen_;              // what each tenant sees of the view
};

}  // namespace vfmgr
