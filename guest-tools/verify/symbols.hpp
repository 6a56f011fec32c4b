// SPDX-License-Identifier: Apache-2.0
// Resolves symbols of a library opened at run time; keeps the name of the first missing one. One
// thread.
#pragma once

#include <dlfcn.h>

#include <string>

namespace vfmgr::verify {

class Symbols {
  public:
    explicit Symbols(void* library) : library_(library) {}
    template <class F>
    Symbols& need(F& slot, char const* name) {
        maybe(slot, name);
        if (!slot && missing_.empty()) missing_ = name;
        return *this;
    }
    template <class F>
    Symbols& maybe(F& slot, char const* name) {
        slot = reinterpret_cast<F>(::dlsym(library_, name));
        return *this;
    }
    [[nodiscard]] std::string const& missing() const { return missing_; }

  private:
    void* library_;
    std::string missing_;
};

}  // namespace vfmgr::verify
