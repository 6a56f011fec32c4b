// SPDX-License-Identifier: Apache-2.0
// What stock clients take of this host while they test: queue pairs, threads that spin,
// descriptors. Of each attachment a part, and a limit for all together. Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/types/problem.hpp"
#include "api/types/stock.hpp"

namespace vfmgr::stock {

struct Taken {
    std::size_t pairs = 0;
    std::size_t spinning = 0;     // threads that look for messages all the time
    std::size_t descriptors = 0;  // of this process
};

struct ShareLimits {
    Taken each{64, 8, 256};  // of one attachment
    Taken all{128, 16, 512};
};

// What one client's connection takes, and each queue pair that it opens: the device's two
// descriptors, and its completion channel.
inline constexpr Taken taken_by_client{0, 0, 1};
[[nodiscard]] constexpr Taken taken_by_pair(StockTest test) {
    bool const spins = test == StockTest::send_echo || test == StockTest::write_echo;
    return {1, spins ? 1U : 0U, 3};
}

class Shares {
  public:
    explicit Shares(ShareLimits limits = {}) : limits_(limits) {}
    Shares(Shares const&) = delete;
    Shares& operator=(Shares const&) = delete;

    // Given back when it is destroyed.
    class Share {
      public:
        Share(Shares& owner, std::string attachment, Taken taken);

      private:
        struct GiveBack {
            std::string attachment;
            Taken taken;
            void operator()(Shares* owner) const { owner->give_back(attachment, taken); }
        };
        std::unique_ptr<Shares, GiveBack> owner_;
    };
    // limit_exceeded, which names what there is no more of.
    [[nodiscard]] Result<Share> take(std::string const& attachment, Taken const& wanted);

    [[nodiscard]] Taken taken() const;

  private:
    void give_back(std::string const& attachment, Taken const& taken);

    ShareLimits const limits_;
    mutable std::mutex mutex_;  // guards what follows
    Taken all_;
    std::map<std::string, Taken> each_;  // by attachment
};

}  // namespace vfmgr::stock
