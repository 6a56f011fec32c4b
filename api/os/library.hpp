// SPDX-License-Identifier: Apache-2.0
// A library that is opened at run time and never closed, because it has threads of its own. One
// thread.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "api/types/problem.hpp"

namespace vfmgr {

class Library {
  public:
    // Fails with not_found. `consequence` ends the detail: ", so no GPU can be queried".
    [[nodiscard]] static Result<Library> open(std::string const& name, std::string_view consequence,
                                              std::string remedy);

    // A function's address, which converts to a pointer of its type; null if the library lacks it.
    struct Symbol {
        char const* name = "";
        void* address = nullptr;
        template <class F>
            requires std::is_pointer_v<F>
        operator F() const {
            return reinterpret_cast<F>(address);
        }
    };
    [[nodiscard]] Symbol maybe(char const* name) const { return {name, ::dlsym(handle_, name)}; }
    // Remembers the first symbol that is missing.
    [[nodiscard]] Symbol need(char const* name) {
        auto const found = maybe(name);
        if (!found.address && missing_.empty()) missing_ = name;
        return found;
    }
    [[nodiscard]] Symbol newest(char const* newer, char const* older) {
        auto const found = maybe(newer);
        return found.address ? found : need(older);
    }
    [[nodiscard]] std::string const& missing() const { return missing_; }

  private:
    explicit Library(void* handle) : handle_(handle) {}
    void* handle_;
    std::string missing_;
};

// A function of such a library that returns a number, 0 on success; may be missing.
template <class... Arguments>
class LibraryFunction {
  public:
    LibraryFunction(Library::Symbol symbol) : name_(symbol.name), address_(symbol) {}
    [[nodiscard]] char const* name() const { return name_; }
    [[nodiscard]] explicit operator bool() const { return address_ != nullptr; }
    int operator()(Arguments... arguments) const { return address_(arguments...); }

  private:
    char const* name_;
    int (*address_)(Arguments...);
};

}  // namespace vfmgr
