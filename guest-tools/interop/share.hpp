// SPDX-License-Identifier: Apache-2.0
// Limits the resources that interop clients take from this host while they test: queue pairs,
// spinning threads and descriptors, for each attachment and in total. Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/types/interop.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::interop {

struct Taken {
    std::size_t pairs = 0;
    std::size_t spinning = 0;     // threads that poll without sleeping
    std::size_t descriptors = 0;  // in this process
};

struct ShareLimits {
    Taken each{64, 8, 256};  // per attachment
    Taken all{128, 16, 512};
};

// A client's connection takes one descriptor. Each queue pair takes three more: two for the device
// and one for the completion channel.
inline constexpr Taken taken_by_client{0, 0, 1};
[[nodiscard]] constexpr Taken taken_by_pair(InteropTest test) {
    bool const spins = test == InteropTest::send_echo || test == InteropTest::write_echo;
    return {1, spins ? 1U : 0U, 3};
}

class Shares {
  public:
    explicit Shares(ShareLimits limits = {}) : limits_(limits) {}
    Shares(Shares const&) = delete;
    Shares& operator=(Shares const&) = delete;

    // Returns its part on destruction.
    class Share {
      public:
        Share(Shares& owner, std::string attachment, Taken taken);

      private:
        struct ReturnPart {
            std::string attachment;
            Taken taken;
            void operator()(Shares* owner) const { owner->free(attachment, taken); }
        };
        std::unique_ptr<Shares, ReturnPart> owner_;
    };
    // Fails with limit_exceeded and names the resource that has run out.
    [[nodiscard]] Result<Share> take(std::string const& attachment, Taken const& expected);

    [[nodiscard]] Taken taken() const;

  private:
    void free(std::string const& attachment, Taken const& taken);

    ShareLimits const limits_;
    mutable std::mutex mutex_;  // guards what follows
    Taken all_;
    std::map<std::string, Taken> each_;  // by attachment
};

}  // namespace vfmgr::interop
