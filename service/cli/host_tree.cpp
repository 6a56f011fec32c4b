// SPDX-License-Identifier: Apache-2.0
#include "service/cli/host_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "service/cli/table.hpp"

namespace vfmgr {
namespace {

struct Line {
    std::size_t depth = 0;
    std::string text;
    HostDevice const* device = nullptr;  // null: of a bridge or port
};

std::vector<PciAddress> path_of(HostDevice const& device) {
    std::vector<PciAddress> path;
    for (auto const& port : device.place.above) path.push_back(port.address);
    return path;
}

// The bus that the host bridge makes: 0000:16.
std::string bridge_of(HostDevice const& device) {
    auto const& above = device.place.above;
    auto const& first = above.empty() ? device.place.address : above.front().address;
    return fmt::format("{:04x}:{:02x}", first.domain, first.bus);
}

std::string described(HostDevice const& device) {
    auto const& place = device.place;
    auto text = fmt::format("{} {} [{:04x}:{:04x}]", to_string(place.address),
                            device.kind == HostDeviceKind::gpu ? "GPU" : "NIC", device.vendor,
                            device.device);
    if (!device.name.empty()) text += " " + printable(device.name);
    if (place.speed_gts && place.width)
        text += fmt::format(", {} GT/s x{}", *place.speed_gts, *place.width);
    return text;
}

std::vector<Line> lines_of(HostTree const& tree) {
    std::vector<HostDevice const*> devices;
    for (auto const& device : tree.devices) devices.push_back(&device);
    std::ranges::sort(devices, {}, [](HostDevice const* one) {
        return std::tuple(bridge_of(*one), path_of(*one), one->place.address);
    });
    std::vector<Line> lines;
    std::string bridge;
    std::vector<PciAddress> above;
    for (auto const* const device : devices) {
        auto const path = path_of(*device);
        if (bridge_of(*device) != bridge) {
            bridge = bridge_of(*device);
            above.clear();
            auto const node = device->place.numa_node;
            lines.push_back({0, fmt::format("host bridge {}, {}", bridge,
                                            node ? fmt::format("NUMA node {}", *node)
                                                 : "NUMA node not reported")});
        }
        auto const parted = std::ranges::mismatch(path, above);
        for (auto port = parted.in1; port != path.end(); ++port)
            lines.push_back({static_cast<std::size_t>(port - path.begin()) + 1, to_string(*port)});
        above = path;
        lines.push_back({path.size() + 1, described(*device), device});
    }
    return lines;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (char const byte : text) {
        if (byte == '<')
            out += "&lt;";
        else if (byte == '&')
            out += "&amp;";
        else
            out += byte;
    }
    return out;
}

constexpr std::size_t row_px = 22, step_px = 20, margin_px = 12, text_px = 520, arc_px = 24;

std::size_t middle_of(std::vector<Line> const& lines, PciAddress const& address) {
    auto const line = std::ranges::find_if(
        lines, [&](Line const& one) { return one.device && one.device->place.address == address; });
    return margin_px + static_cast<std::size_t>(line - lines.begin()) * row_px + row_px / 2;
}

}  // namespace

std::string tree_text(HostTree const& tree) {
    std::string text;
    for (auto const& line : lines_of(tree))
        text += std::string(2 * line.depth, ' ') + line.text + "\n";
    return text;
}

std::string tree_svg(HostTree const& tree) {
    auto const lines = lines_of(tree);
    auto const width = text_px + (tree.pairs.size() + 3) * arc_px;
    auto svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"monospace\" font-size=\"13\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, 2 * margin_px + lines.size() * row_px);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        auto const& [depth, text, device] = lines[i];
        auto const* const color = !device                               ? "#555555"
                                  : device->kind == HostDeviceKind::gpu ? "#2e7d32"
                                                                        : "#1565c0";
        svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n",
                           margin_px + depth * step_px, margin_px + i * row_px + 15, color,
                           escaped(text));
    }
    for (std::size_t i = 0; i < tree.pairs.size(); ++i) {
        auto const& [gpu, pf, distance] = tree.pairs[i];
        if (!pf) continue;
        auto const from = middle_of(lines, gpu);
        auto const to = middle_of(lines, *pf);
        auto const out = text_px + (i + 1) * arc_px;
        svg += fmt::format(
            "<polyline points=\"{0},{1} {2},{1} {2},{3} {0},{3}\" fill=\"none\" "
            "stroke=\"#777777\"/>\n<text x=\"{4}\" y=\"{5}\" fill=\"#777777\" "
            "font-size=\"11\">{6}</text>\n",
            text_px, from, out, to, text_px + 2, from - 3, enum_name(distance));
    }
    return svg + "</svg>\n";
}

}  // namespace vfmgr
