// SPDX-License-Identifier: Apache-2.0
#include "service/cli/as_owner.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace vfmgr {

Result<Held> as_owner_of(std::string const& file) {
    auto const folder = std::filesystem::path(file).parent_path();
    struct stat owned{};
    if (::geteuid() != 0 || ::stat(folder.c_str(), &owned) != 0 || owned.st_uid == 0) return Held{};
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
    bool const known =
        ::getgroups(static_cast<int>(groups.size()), groups.data()) == std::ssize(groups);
    auto const root_again = [groups] {
        if (::seteuid(0) != 0 || ::setegid(0) != 0 ||
            ::setgroups(groups.size(), groups.data()) != 0)
            std::abort();
    };
    if (known && ::setgroups(0, nullptr) == 0 && ::setegid(owned.st_gid) == 0 &&
        ::seteuid(owned.st_uid) == 0)
        return held(root_again);
    auto const error = errno;
    root_again();
    return fail(
        Problem::unavailable,
        fmt::format("{} can't be read as its owner, {}: {}", file, owned.st_uid, errno_name(error)),
        "start vfmgrd, then try again: systemctl restart vfmgrd");
}

}  // namespace vfmgr
