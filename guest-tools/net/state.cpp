// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/state.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "api/os/file.hpp"
#include "api/types/json.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;

Error not_written(std::string const& path) {
    Error error{Problem::unavailable, fmt::format("{} can't be written", path),
                "run vf-guest as root; /run must be writable"};
    error.causes.push_back(errno_cause("write", errno));
    return error;
}

}  // namespace

template <class F, Of<Configured> V>
void fields(F& f, V& configured) {
    f.value("attachment", configured.attachment);
    f.value("mac", configured.mac);
    f.value("ifname", configured.ifname);
    f.value("ifindex", configured.ifindex);
    f.value("address", configured.address);
    f.value("prefix_length", configured.prefix_length);
    f.value("mtu", configured.mtu);
    f.value("rdma_device", configured.rdma_device);
    f.value("rdma_device_ours", configured.rdma_device_ours);
    f.defaulted("arp_before", configured.arp_before);
    f.value("complete", configured.complete);
}

std::string StateFolder::file(std::string const& attachment) const {
    return path_ + "/" + attachment + ".json";
}

std::vector<Configured> StateFolder::load() const {
    std::vector<Configured> all;
    std::error_code ignored;
    for (fs::directory_iterator it(path_, ignored), end; !ignored && it != end;
         it.increment(ignored)) {
        if (it->path().extension() != ".json") continue;
        auto const text = read_file(it->path());
        if (auto configured = from_json_text<Configured>(text.value_or("")))
            all.push_back(std::move(*configured));
    }
    return all;
}

Result<void> StateFolder::save(Configured const& configured) const {
    std::error_code failed;
    fs::create_directories(path_, failed);
    auto const target = file(configured.attachment);
    auto const draft = target + ".new";
    {
        std::ofstream out(draft);
        out << to_json_text(configured) << '\n';
        if (!out.flush()) return fail(not_written(draft));
    }
    if (std::rename(draft.c_str(), target.c_str()) != 0) return fail(not_written(target));
    return {};
}

void StateFolder::forget(std::string const& attachment) const {
    std::error_code ignored;
    fs::remove(file(attachment), ignored);
}

}  // namespace vfmgr::guest

template struct vfmgr::Json<vfmgr::guest::Configured>;
