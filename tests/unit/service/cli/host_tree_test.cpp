// SPDX-License-Identifier: Apache-2.0
#include "service/cli/host_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

PciPort port_at(std::uint8_t bus) {
    return {PciAddress{0, bus, 1, 0}};
}

HostTree one_switch() {
    std::vector<PciPort> const below_switch{port_at(0x16), port_at(0x17)};
    PciPlace const gpu{PciAddress{0, 0x18, 0, 0}, below_switch, 0, {}, {}};
    PciPlace const nic{PciAddress{0, 0x19, 0, 0}, below_switch, 0, 32.0, 16};
    PciPlace const far{PciAddress{0, 0x31, 0, 0}, {port_at(0x30)}, {}, {}, {}};
    return {{{HostDeviceKind::gpu, "", 0x10de, 0x2330, gpu},
             {HostDeviceKind::nic, "ens<1>&", 0x15b3, 0x101e, nic},
             {HostDeviceKind::nic, "", 0x15b3, 0x101e, far}},
            {{gpu.address, nic.address, PciDistance::pix},
             {PciAddress{0, 0x99, 0, 0}, std::nullopt, {}}},
            {}};
}

TEST(HostTreeText, IndentsWhatIsBelowAnotherAndNamesASharedPortOnce) {
    EXPECT_EQ(tree_text(one_switch()),
              "host bridge 0000:16, NUMA node 0\n"
              "  0000:16:01.0\n"
              "    0000:17:01.0\n"
              "      0000:18:00.0 GPU [10de:2330]\n"
              "      0000:19:00.0 NIC [15b3:101e] ens<1>&, 32 GT/s x16\n"
              "host bridge 0000:30, NUMA node not reported\n"
              "  0000:30:01.0\n"
              "    0000:31:00.0 NIC [15b3:101e]\n");
    EXPECT_EQ(tree_text({}), "");
}

TEST(HostTreeSvg, DrawsThePairsAndEscapesNames) {
    auto const svg = tree_svg(one_switch());
    EXPECT_THAT(svg, HasSubstr("ens&lt;1>&amp;"));
    EXPECT_THAT(svg, HasSubstr(">PIX</text>"));
    EXPECT_THAT(svg, Not(HasSubstr("ens<1>")));
    std::size_t lines = 0;
    for (auto at = svg.find("<polyline"); at != svg.npos; at = svg.find("<polyline", at + 1))
        ++lines;
    EXPECT_EQ(lines, 1U) << "a GPU without a PF has no line";
}

}  // namespace
}  // namespace vfmgr
