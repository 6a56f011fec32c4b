// SPDX-License-Identifier: Apache-2.0
// Reads the tables of configuration files, and collects every fault by its line. Include in .cpp
// files only. One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "service/config_paths.hpp"
#include "service/config_values.hpp"

namespace vfmgr {

// One file.
class ConfigTables {
  public:
    // Calls the setter of each key. A key that `keys` lacks is a fault.
    void read_all(toml::table const& table, std::string const& prefix, Keys const& keys);
    // The same, but keys that are not in `keys` are somebody else's.
    void read_some(toml::table const& table, Keys const& keys);

    // A table with these keys.
    [[nodiscard]] Setter table(std::string prefix, Keys keys);
    // A table whose keys the admin chooses.
    [[nodiscard]] Setter entries(
        std::string prefix, std::function<std::string(std::string const&, toml::node const&)> set);
    void complain(toml::source_region const& where, std::string detail);

    // As violations whose pointers are "file:line", by line: toml++ returns keys by name, but
    // admins read files by line.
    [[nodiscard]] std::vector<Violation> violations(std::string const& file) const;

  private:
    struct Fault {
        std::uint32_t line;
        std::string detail;
        auto operator<=>(Fault const&) const = default;
    };
    std::vector<Fault> faults_;
};

// Calls `read` with the root of the file, then of each *.toml of the folder in order of name. A
// missing file is no fault, unless the admin named it.
[[nodiscard]] std::vector<Violation> read_config_files(
    ConfigPaths const& paths,
    std::function<void(ConfigTables&, toml::table const& root)> const& read);

// The first violation as the detail, and all of them. `manual` describes every key.
[[nodiscard]] Result<void> none_of(std::vector<Violation> violations,
                                   std::string_view manual = "vfmgr.toml(5)");

}  // namespace vfmgr
