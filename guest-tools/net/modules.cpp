// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/modules.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <filesystem>

#include "guest-tools/net/child_process.hpp"

namespace vfmgr::guest {
namespace {

Error missing(std::string const& module, std::string why) {
    utsname names{};
    std::string const kernel = ::uname(&names) == 0 ? names.release : "this kernel";
    return {Problem::unsupported,
            fmt::format("the kernel module {} is not loaded: {}", module, std::move(why)),
            fmt::format("install {} for kernel {} (Debian: linux-image-amd64, not -cloud; Ubuntu: "
                        "linux-modules-extra-{}; RHEL: kernel-modules-extra) and run modprobe {}",
                        module, kernel, kernel, module)};
}

}  // namespace

Result<void> need_module(std::string const& sysfs, std::string const& module, Deadline deadline) {
    if (std::error_code ignored; std::filesystem::exists(sysfs + "/module/" + module, ignored))
        return {};
    auto loaded = run_program({"modprobe", module}, deadline);
    if (!loaded && loaded.error().problem == Problem::unsupported)
        return fail(missing(module, loaded.error().detail));
    return loaded;
}

}  // namespace vfmgr::guest
