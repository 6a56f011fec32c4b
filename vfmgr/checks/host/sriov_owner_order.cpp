// SPDX-License-Identifier: Apache-2.0
// Which of systemd's files applies to a device: systemd.link(5) and systemd.network(5).
#include <algorithm>
#include <array>
#include <vector>

#include "vfmgr/checks/host/sriov_owner_lines.hpp"

namespace vfmgr::checks {
namespace {

// A file of an earlier folder replaces one of the same name in a later one.
constexpr std::array<std::string_view, 4> folders{"/etc/systemd/network/", "/run/systemd/network/",
                                                  "/usr/local/lib/systemd/network/",
                                                  "/usr/lib/systemd/network/"};

struct NetworkFile {
    std::string_view name;  // "20-vfs.link"
    std::size_t folder = 0;
};

std::optional<NetworkFile> file_at(std::string_view path) {
    for (std::size_t i = 0; i < folders.size(); ++i)
        if (path.starts_with(folders[i])) {
            auto const name = path.substr(folders[i].size());
            // "20-vfs.link.d/more.conf" is a part of 20-vfs.link.
            auto const stem = name.substr(0, name.find(".d/"));
            // "vfs.d/more.conf" belongs to no file.
            if (stem.find('.') == stem.npos) return std::nullopt;
            return NetworkFile{stem, i};
        }
    return std::nullopt;
}

// True only if all that the file asks for is known, and true of the device. A file that asks for
// nothing is for no device.
bool surely_applies(std::string_view text, DeviceSelector const& device) {
    auto const match = parse_match(text);
    return match && !match->any() && means(*match, device);
}

bool replaces(NetworkFile const& one, NetworkFile const& other) {
    return one.name == other.name && one.folder < other.folder;
}

bool is_replaced(Facts const& facts, NetworkFile const& file) {
    return std::ranges::any_of(facts.files, [&](auto const& one) {
        auto const other = file_at(one.first);
        // A drop-in adds to a file, and replaces none.
        return other && one.first.ends_with(other->name) && replaces(*other, file);
    });
}

}  // namespace

Known<bool> is_overridden(Machine const& machine, std::string_view path,
                          DeviceSelector const& device) {
    auto const own = file_at(path);
    if (!own) return false;
    auto const suffix = own->name.substr(own->name.rfind('.'));
    auto const& facts = machine.facts.unnoted();
    Known<bool> overridden = false;
    for (auto const folder : folders) {
        auto const pattern = fmt::format("{}*{}", folder, suffix);
        if (!facts.looked_up(pattern)) overridden = tl::unexpected(Unknown{pattern, 0});
        for (auto const& [other_path, fact] : facts.files) {
            if (!matches(pattern, other_path)) continue;
            auto const other = file_at(other_path);
            if (!other) continue;
            if (replaces(*other, *own)) return true;
            if (other->name >= own->name || is_replaced(facts, *other)) continue;
            if (fact.error != 0)
                overridden = tl::unexpected(Unknown{other_path, fact.error});
            else if (surely_applies(fact.bytes, device))
                return true;
        }
    }
    return overridden;
}

}  // namespace vfmgr::checks
