// SPDX-License-Identifier: Apache-2.0
// TLS contexts of clients, one for all targets with the same files. Internal to api/http. Not
// synchronised.
#pragma once

#include <sys/types.h>

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <string>

#include "api/http/tls.hpp"

namespace vfmgr::http {

class TlsContexts {
  public:
    // Returns the context for the target's files as they are now. If they have changed and can't be
    // used, because a renewal is half done, the former one stays.
    [[nodiscard]] Result<std::shared_ptr<SSL_CTX>> of(TlsTarget const& target);

  private:
    using Files = std::array<std::string, 3>;  // CA, certificate, key
    struct Stamp {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = -1;
        long seconds = 0;
        long nanoseconds = 0;
        bool operator==(Stamp const&) const = default;
    };
    struct Kept {
        std::array<Stamp, 3> stamps{};
        std::shared_ptr<SSL_CTX> context{};
    };
    static Stamp stamp_of(std::string const& file);

    std::map<Files, Kept> kept_;
};

}  // namespace vfmgr::http
