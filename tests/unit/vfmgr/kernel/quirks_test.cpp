// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/quirks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "api/types/problem.hpp"
#include "tests/unit/repository.hpp"

namespace vfmgr::quirks {
namespace {

namespace fs = std::filesystem;

struct Case {
    Refused refused;
    char const* says;
};

Refused refused(VfAttribute attribute, int error) {
    return {attribute, error, LinkLayer::ethernet, EswitchMode::legacy, "0000:01:00.0"};
}
Refused in_switchdev(VfAttribute attribute) {
    auto with = refused(attribute, EOPNOTSUPP);
    with.eswitch_mode = EswitchMode::switchdev;
    return with;
}
Refused of_infiniband(VfAttribute attribute) {
    return {attribute, EOPNOTSUPP, LinkLayer::infiniband, std::nullopt, "0000:01:00.0"};
}

TEST(RemedyFor, IsTheOneOfTheCause) {
    for (auto const& [each, says] :
         {Case{in_switchdev(VfAttribute::vlan), "at its representor"},
          Case{in_switchdev(VfAttribute::max_tx_rate), "port of pci/0000:01:00.0 (devlink port"},
          Case{in_switchdev(VfAttribute::trust), "leave trust out"},
          Case{in_switchdev(VfAttribute::link_state), "this driver does not support it"},
          Case{of_infiniband(VfAttribute::mac), "InfiniBand PF has no mac"},
          Case{of_infiniband(VfAttribute::node_guid), "only InfiniBand PFs set"},
          Case{refused(VfAttribute::port_guid, EOPNOTSUPP), "leave port_guid out"},
          Case{refused(VfAttribute::mac, EPERM), "DPU mode"},
          Case{refused(VfAttribute::vlan, EPROTONOSUPPORT), "802.1Q only"},
          Case{refused(VfAttribute::vlan, EOPNOTSUPP),
               "this driver does not support it: leave vlan out"},
          Case{refused(VfAttribute::msix_vectors, EBUSY), "unbind the VF"},
          Case{in_switchdev(VfAttribute::roce), "Linux 6.2"},
          Case{refused(VfAttribute::roce, EOPNOTSUPP), "eswitch show pci/0000:01:00.0"},
          Case{refused(VfAttribute::min_tx_rate, EINVAL), "bring the PF's link up"},
          Case{refused(VfAttribute::mac, EINVAL), "choose another value, leave mac out"}})
        EXPECT_NE(remedy_for(each).find(says), std::string::npos)
            << says << ": " << remedy_for(each);
}

// There is a remedy for whatever error a driver returns for any attribute.
TEST(RemedyFor, IsThereForEveryRefusal) {
    for_each_member([](VfAttribute attribute, auto) {
        for (int const error : {EPERM, EINVAL, EOPNOTSUPP, EBUSY, EIO, ENODEV})
            for (auto const& each :
                 {refused(attribute, error), in_switchdev(attribute), of_infiniband(attribute)}) {
                auto const remedy = remedy_for(each);
                EXPECT_FALSE(remedy.empty());
                EXPECT_EQ(remedy.find('{'), std::string::npos) << remedy;
            }
    });
}

TEST(RemedyForCount, IsTheDriversOwn) {
    EXPECT_NE(remedy_for_count(ENOSPC).value().find("no interrupt vectors"), std::string::npos);
    EXPECT_NE(remedy_for_count(ENETDOWN).value().find("bring the PF up"), std::string::npos);
    EXPECT_EQ(remedy_for_count(EIO), std::nullopt);
}

// --- the table and its document ---

std::string content_of(fs::path const& file) {
    std::ifstream stream(file);
    EXPECT_TRUE(stream) << file;
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::string subject_of(Quirk const& quirk) {
    if (quirk.of == num_vfs) return "number of VFs";
    if (quirk.of == counters) return "counters";
    if (quirk.of == every_attribute) return "every attribute";
    std::vector<std::string> names;
    for_each_member([&](VfAttribute each, auto) {
        if ((quirk.of & bit(each)) != 0) names.push_back(fmt::format("`{}`", enum_name(each)));
    });
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string words_of(When when) {
    switch (when) {
        case When::always:
            return "";
        case When::zero:
            return " zero";
        case When::above_zero:
            return " above 0";
        case When::multicast:
            return " a multicast one";
        case When::tagged:
            return " any but VLAN 0";
        case When::dot1ad:
            return " 802.1ad";
        case When::with_qos:
            return " a priority";
        case When::no_carrier:
            return " without link";
        case When::above_speed:
            return " above the link's speed";
        case When::vf_resetting:
            return " while the VF resets";
        case When::vf_bound:
            return " while the VF has a driver";
        case When::pf_down:
            return " while the PF is down";
        case When::foreign_switch:
            return " where the PF does not manage its switch";
    }
    return "";
}

std::string deed_of(Quirk const& quirk) {
    auto text = quirk.effect == Effect::refuses         ? "refuses" + words_of(quirk.when)
                : quirk.effect == Effect::refuses_equal ? "refuses even what it reports"
                                                        : "";
    if (quirk.error != any_error) text += ": " + std::string(errno_name(quirk.error));
    if (!text.empty() && !quirk.says.empty()) text += "; ";
    return text + std::string(quirk.says);
}

std::string table_of_quirks() {
    constexpr std::array where{"", ", switchdev mode", ", InfiniBand"};
    std::string text =
        "| driver | of | what it does | source | shown by |\n"
        "|---|---|---|---|---|\n";
    for (auto const& quirk : table)
        text += fmt::format("| {}{} | {} | {} | {} | {} |\n",
                            quirk.drivers.empty() ? "any" : quirk.drivers,
                            where.at(static_cast<std::size_t>(quirk.where)), subject_of(quirk),
                            deed_of(quirk), quirk.source, quirk.test);
    return text;
}

TEST(Table, IsTheDocuments) {
    auto const file = test::repository() / "vfmgr/kernel/KERNEL.md";
    auto const text = content_of(file);
    std::string const begin = "<!-- quirks: written by kernel_test -->\n";
    auto const from = text.find(begin);
    auto const to = text.find("<!-- end of quirks -->");
    ASSERT_TRUE(from != text.npos && to != text.npos);
    auto const expected = text.substr(0, from) + begin + table_of_quirks() + text.substr(to);
    if (std::getenv("VFMGR_UPDATE_GOLDEN")) std::ofstream(file) << expected;
    EXPECT_EQ(content_of(file), expected) << "VFMGR_UPDATE_GOLDEN=1 rewrites it";
}

std::string text_of_test(std::string const& name) {
    for (auto const& each : fs::recursive_directory_iterator(test::repository() / "tests"))
        if (each.path().filename() == name + ".cpp") return content_of(each.path());
    return {};
}

// "vf_test ParseVfSettings.NonsenseIsNoVf" is TEST(ParseVfSettings, NonsenseIsNoVf) in vf_test.cpp.
TEST(Table, EachRowIsShownByATestThatExists) {
    std::regex const form("([a-z_]+) ([A-Za-z]+)\\.([A-Za-z0-9]+)");
    for (auto const& quirk : table) {
        std::string const name(quirk.test);
        std::smatch parts;
        ASSERT_TRUE(std::regex_match(name, parts, form)) << name;
        std::regex const test(
            fmt::format("TEST(_[FP])?\\({},\\s*{}\\)", parts[2].str(), parts[3].str()));
        EXPECT_TRUE(std::regex_search(text_of_test(parts[1]), test)) << name;
    }
}

TEST(Table, EachRowHasASourceAndAnEffect) {
    for (auto const& quirk : table) {
        EXPECT_FALSE(quirk.source.empty()) << quirk.test;
        EXPECT_FALSE(deed_of(quirk).empty()) << quirk.test;
        EXPECT_NE(quirk.of, 0U) << quirk.test;
        if (quirk.effect != Effect::refuses) {
            EXPECT_TRUE(quirk.remedy.empty()) << quirk.test;
        }
    }
}

}  // namespace
}  // namespace vfmgr::quirks
