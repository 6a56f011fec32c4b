// SPDX-License-Identifier: Apache-2.0
// Names that calls are about: one call for each at a time. Any thread.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <string>

#include "api/types/problem.hpp"

namespace vfmgr::fleet {

class NamesInUse {
  public:
    // Holds a name until it is destroyed. `names` outlives it.
    class Use {
      public:
        Use(NamesInUse& names, std::string name)
            : names_(names), name_(std::move(name)), own_(names.begin(name_)) {}
        ~Use() {
            if (own_) names_.end(name_);
        }
        Use(Use const&) = delete;
        Use& operator=(Use const&) = delete;
        // Fails with unavailable: another call has it.
        [[nodiscard]] Result<void> check() const {
            if (own_) return {};
            return fail(
                discreetly({Problem::unavailable,
                            fmt::format("another request about reservation {} goes on", name_),
                            "send it again when that one is answered"}));
        }

      private:
        NamesInUse& names_;
        std::string const name_;
        bool const own_;
    };

    [[nodiscard]] bool contains(std::string const& name) const {
        std::lock_guard const lock(mutex_);
        return names_.contains(name);
    }

  private:
    bool begin(std::string const& name) {
        std::lock_guard const lock(mutex_);
        return names_.insert(name).second;
    }
    void end(std::string const& name) {
        std::lock_guard const lock(mutex_);
        names_.erase(name);
    }

    mutable std::mutex mutex_;
    std::set<std::string> names_;  // guarded by mutex_
};

}  // namespace vfmgr::fleet
