// SPDX-License-Identifier: Apache-2.0
#include "service/guest/retries.hpp"

#include <fmt/format.h>

#include <utility>

namespace vfmgr::guestd {
namespace {

std::string name_of(std::string const& run, unsigned tries) {
    return tries == 1 ? run : fmt::format("{}-{}", run, tries);
}

}  // namespace

void Retries::begin_again() {
    for (auto& [run, tries] : tries_) ++tries;
}

GuestVms Retries::named(GuestVms vms) {
    std::map<std::string, unsigned> going_on;
    auto const rename = [&](std::string& run) {
        auto const before = tries_.find(run);
        auto const tries = before == tries_.end() ? 1 : before->second;
        going_on.emplace(run, tries);
        run = name_of(run, tries);
    };
    for (auto& [uuid, vm] : vms.vms) {
        std::map<std::string, ResponderTarget> remotes;
        for (auto& [run, target] : vm.access.remotes) {
            auto name = run;
            rename(name);
            remotes.insert_or_assign(std::move(name), std::move(target));
        }
        vm.access.remotes = std::move(remotes);
        for (auto& permit : vm.access.permits) rename(permit.run);
        for (auto& attachment : vm.access.attachments)
            if (attachment.run) rename(*attachment.run);
    }
    tries_ = std::move(going_on);
    return vms;
}

std::string original_run(std::string_view name) {
    return std::string(name.substr(0, name.find('-')));
}

}  // namespace vfmgr::guestd
