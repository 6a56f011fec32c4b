// SPDX-License-Identifier: Apache-2.0
// A folder that is removed with the test that owns it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace vfmgr::test {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        auto text = (std::filesystem::temp_directory_path() / "vfmgr-test-XXXXXX").string();
        if (!::mkdtemp(text.data())) throw std::runtime_error("mkdtemp " + text);
        path_ = text;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(TemporaryFolder const&) = delete;
    TemporaryFolder& operator=(TemporaryFolder const&) = delete;
    [[nodiscard]] std::filesystem::path const& path() const { return path_; }
    [[nodiscard]] std::string file(std::string const& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

}  // namespace vfmgr::test
