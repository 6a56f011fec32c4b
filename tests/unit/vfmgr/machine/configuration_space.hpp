// SPDX-License-Identifier: Apache-2.0
// The bytes of a PCI function's configuration space, for tests. A value.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

namespace vfmgr::checks {

// A configuration space, filled by hand with the specification's offsets.
class ConfigurationSpace {
  public:
    explicit ConfigurationSpace(std::size_t size) : bytes_(size, '\0') {}
    ConfigurationSpace& set(std::size_t at, std::initializer_list<int> values) {
        for (auto const one : values) bytes_.at(at++) = static_cast<char>(one);
        return *this;
    }
    [[nodiscard]] std::string const& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

}  // namespace vfmgr::checks
