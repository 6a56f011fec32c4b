// SPDX-License-Identifier: Apache-2.0
// A card's serial number: as on ConnectX cards, and where there is none.
#include "vfmgr/kernel/pci.hpp"

#include "host_tree.hpp"

namespace vfmgr {
namespace {

using test::HostTree;
using test::pci;

std::string field(std::string const& name, std::string const& value) {
    return name + static_cast<char>(value.size()) + value;
}

std::string resource(unsigned char tag, std::string const& body) {
    return std::string{static_cast<char>(tag), static_cast<char>(body.size() & 0xffU),
                       static_cast<char>(body.size() >> 8U)} +
           body;
}

std::string const name = resource(0x82, "ConnectX-7 VPI adapter card");
std::string const end = "\x78";

std::string with(std::string const& serial) {
    return name +
           resource(0x90, field("PN", "MCX755106AS-HEA_A1") + field("EC", "A5") +
                              field("SN", serial) + field("RV", std::string(9, '\x01'))) +
           end;
}

TEST(Vpd, HasASerialInItsReadOnlyPart) {
    EXPECT_EQ(vpd_serial(with("MT2334XZ0ABC")), "MT2334XZ0ABC");
    EXPECT_EQ(vpd_serial(with("MT2334XZ0ABC  ")), "MT2334XZ0ABC") << "padded";
    EXPECT_EQ(vpd_serial(with(std::string("MT2334XZ0ABC\0\0", 14))), "MT2334XZ0ABC");
}

TEST(Vpd, HasNoneThatCouldNotBeShown) {
    for (auto const* const serial : {"", "   ", "MT\x80", "a\nb"})
        EXPECT_EQ(vpd_serial(with(serial)), std::nullopt) << serial;
    EXPECT_EQ(vpd_serial(name + resource(0x91, field("SN", "written by a user")) + end),
              std::nullopt)
        << "that part can be written";
}

TEST(Vpd, EndsAnywhere) {
    auto const whole = with("MT2334XZ0ABC");
    auto const needed = whole.find("MT2334XZ0ABC") + std::string_view("MT2334XZ0ABC").size();
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_EQ(vpd_serial(whole.substr(0, length)).has_value(), length >= needed) << length;
}

TEST(Vpd, IsReadOnceForEachDevice) {
    HostTree tree;
    tree.add_pf("0000:01:00.0", 7);
    auto const file = tree.device("0000:01:00.0") / "vpd";
    VpdBook book;
    EXPECT_EQ(book.serial_of(tree.roots(), pci("0000:01:00.0")), std::nullopt);
    tree.write(file, with("A"));
    EXPECT_EQ(book.serial_of(tree.roots(), pci("0000:01:00.0")), "A");
    tree.write(file, with("B"));
    EXPECT_EQ(book.serial_of(tree.roots(), pci("0000:01:00.0")), "A") << "the same file";
    // Both exist for a moment, which keeps their inodes distinct.
    auto const next = tree.device("0000:01:00.0") / "next";
    tree.write(next, with("B"));
    std::filesystem::rename(next, file);
    EXPECT_EQ(book.serial_of(tree.roots(), pci("0000:01:00.0")), "B") << "another device";
}

}  // namespace
}  // namespace vfmgr
