// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/programs/views.hpp"

#include <fmt/format.h>

#include <tuple>

#include "api/os/file.hpp"
#include "api/types/json.hpp"

namespace vfmgr::simulation {

// As record_views has them. An id that looks like one by chance would be an id of another host,
// too.
std::vector<std::pair<std::string, Recorded::Mark>> const Recorded::marks = {
    {"\"0000beef-", Mark::uuid},      {"\"vm48879-", Mark::name},
    {"52:be:ef:", Mark::mac},         {"10.190.239.", Mark::net},
    {"\"52:54:00:00:", Mark::pf_mac}, {"\"spoofchk\":true", Mark::drift}};

Recorded::Recorded(std::string const& text) {
    std::size_t from = 0;
    bool drifts = true;  // only its first VF does
    while (true) {
        auto next = std::make_tuple(text.size(), std::string_view(), Mark::none);
        for (auto const& [mark, kind] : marks)
            if (auto const at = text.find(mark, from);
                at < std::get<0>(next) && (kind != Mark::drift || drifts))
                next = {at, mark, kind};
        auto const& [at, mark, kind] = next;
        pieces_.push_back({text.substr(from, at - from), kind});
        if (kind == Mark::none) return;
        if (kind == Mark::drift) drifts = false;
        from = at + mark.size();
    }
}

std::string Recorded::of(std::uint32_t number, bool drifted) const {
    auto const high = number >> 8 & 0xffU, low = number & 0xffU;
    std::string text;
    for (auto const& piece : pieces_) {
        text += piece.text;
        auto const out = std::back_inserter(text);
        switch (piece.then) {
            case Mark::uuid:
                fmt::format_to(out, "\"{:08x}-", number);
                break;
            case Mark::name:
                fmt::format_to(out, "\"vm{}-", number);
                break;
            case Mark::mac:
                fmt::format_to(out, "52:{:02x}:{:02x}:", high, low);
                break;
            case Mark::net:
                fmt::format_to(out, "10.{}.{}.", high, low);
                break;
            case Mark::pf_mac:
                fmt::format_to(out, "\"52:54:{:02x}:{:02x}:", high, low);
                break;
            case Mark::drift:
                fmt::format_to(out, "\"spoofchk\":{}", !drifted);
                break;
            case Mark::none:
                break;
        }
    }
    return text;
}

namespace {

Result<std::vector<VfId>> free_vfs(std::string const& text) {
    VFMGR_TRY(auto const list, parse_json(text));
    std::vector<VfId> free;
    for (auto const& vf : list.at("items")) {
        if (vf.at("state") != "free") continue;
        VFMGR_TRY(auto const pf, PciAddress::parse(vf.at("pf").get<std::string>()));
        free.push_back({pf, vf.at("index").get<std::uint16_t>()});
    }
    return free;
}

}  // namespace

Result<Views> read_views(std::filesystem::path const& folder) {
    Views views;
    std::error_code failed;
    for (auto const& file : paths_in(folder, failed)) {
        auto const text = read_file(file);
        if (!text || file.extension() != ".json") continue;
        auto const name = file.stem().string();
        views.documents.emplace(name == "about" ? "/v1" : "/v1/" + name, Recorded(*text));
        if (name == "vfs") {
            VFMGR_TRY(views.free, free_vfs(*text));
        }
    }
    if (views.free.empty())
        return fail(Problem::not_found, fmt::format("{} has no views of a host", folder.string()),
                    "record them: tests/fleet/record_views");
    return views;
}

}  // namespace vfmgr::simulation
