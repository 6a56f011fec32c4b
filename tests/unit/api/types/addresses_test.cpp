// SPDX-License-Identifier: Apache-2.0
// PCI addresses, MAC addresses and GUIDs: which texts are valid, and which value they have.
#include "api/types/addresses.hpp"
#include "api/types/json.hpp"
#include "texts.hpp"

namespace vfmgr {
namespace {

using namespace std::string_view_literals;
using test::expect_read;
using test::expect_refused;

TEST(PciAddress, ReadsWhatTheKernelAndLspciPrint) {
    expect_read<PciAddress>({{"0000:3b:00.2", "0000:3b:00.2"},
                             {"3b:00.2", "0000:3b:00.2"},
                             {"3B:1F.7", "0000:3b:1f.7"},
                             {"FFFF:ff:1f.0", "ffff:ff:1f.0"},
                             {"10000:00:00.0", "10000:00:00.0"},
                             {"ffffffff:00:00.0", "ffffffff:00:00.0"}});
    EXPECT_EQ(PciAddress::parse("ab12:3b:1f.7").value(), (PciAddress{0xab12, 0x3b, 31, 7}));
}

TEST(PciAddress, RefusesWhatIsNone) {
    expect_refused<PciAddress>({"",
                                ":",
                                ":.",
                                "::.",
                                "3b",
                                "3b:00",
                                "0000:3b:00",
                                "0000:3b:00.",
                                "3b:00.",
                                ":3b:00.2",
                                "000:3b:00.2",
                                "100000000:3b:00.2",
                                "0000:3b:20.0",
                                "0000:3b:00.8",
                                "0000:3b:00.10",
                                "0000:3b:0.2",
                                "0000:b:00.2",
                                "0000:03b:00.2",
                                "0000:3g:00.2",
                                "0000:3b:00.-",
                                "0000:-1:00.2",
                                "0000:+1:00.2",
                                "0x00:3b:00.2",
                                "0000: 3:00.2",
                                "0000:3b:00:2",
                                "0000.3b.00.2",
                                "0000/3b/00.2",
                                "0000:3b:0\0.2"sv,
                                "\xff\xff\xff\xff:3b:00.2"});
}

TEST(PciAddress, AreOrderedAsTheBusIs) {
    auto const below = [](char const* first, char const* second) {
        return PciAddress::parse(first).value() < PciAddress::parse(second).value();
    };
    EXPECT_TRUE(below("0000:ff:1f.7", "0001:00:00.0"));
    EXPECT_TRUE(below("0000:00:1f.7", "0000:01:00.0"));
    EXPECT_TRUE(below("0000:00:00.7", "0000:00:01.0"));
    EXPECT_TRUE(below("0000:00:00.0", "0000:00:00.1"));
}

TEST(VfId, IsItsPfAndItsNumber) {
    VfId const vf{{0, 0x3b, 0, 0}, 65535};
    EXPECT_EQ(to_string(vf), "0000:3b:00.0/65535");
    nlohmann::json const document = vf;
    EXPECT_EQ(document, (nlohmann::json{{"pf", "0000:3b:00.0"}, {"index", 65535}}));
    EXPECT_EQ(from_json_document<VfId>(document), vf);
}

TEST(MacAddress, ReadsTwoWaysToWriteIt) {
    expect_read<MacAddress>({{"02:1a:4b:00:00:01", "02:1a:4b:00:00:01"},
                             {"02-1A-4B-00-00-FF", "02:1a:4b:00:00:ff"},
                             {"ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"},
                             {"00:00:00:00:00:00", "00:00:00:00:00:00"}});
    EXPECT_EQ(MacAddress::parse("01:23:45:67:89:ab").value(),
              (MacAddress{{0x01, 0x23, 0x45, 0x67, 0x89, 0xab}}));
}

TEST(MacAddress, RefusesWhatIsNone) {
    expect_refused<MacAddress>({"", ":::::", "02:1a:4b:00:00", "02:1a:4b:00:00:1",
                                "02:1a:4b:00:00:001", "02:1a:4b:00:00:01:02", "021a4b000001",
                                "021a.4b00.0001", "02:1a-4b:00-00:01", "02-1a-4b:00:00:01",
                                "02.1a.4b.00.00.01", "02:1a:4b:00:00:0g", "02:1a:4b:00:00:-1",
                                "02:1a:4b:00:00:+1", "02:1a:4b:00:00: 1", "0x:1a:4b:00:00:01",
                                "02:1a:4b:00:00:0\0"sv, "\xff\xff:1a:4b:00:00:01"});
}

TEST(MacAddress, KnowsWhoIsMeant) {
    struct Row {
        char const* text;
        bool multicast, zero;
    };
    for (auto const& [text, multicast, zero] : {Row{"00:00:00:00:00:00", false, true},
                                                {"00:00:00:00:00:01", false, false},
                                                {"02:00:00:00:00:00", false, false},
                                                {"fe:ff:ff:ff:ff:ff", false, false},
                                                {"01:00:5e:00:00:01", true, false},
                                                {"33:33:00:00:00:01", true, false},
                                                {"ff:ff:ff:ff:ff:ff", true, false}}) {
        auto const mac = MacAddress::parse(text).value();
        EXPECT_EQ(mac.multicast(), multicast) << text;
        EXPECT_EQ(mac.zero(), zero) << text;
    }
}

TEST(Guid, ReadsThreeWaysToWriteIt) {
    expect_read<Guid>({{"24:8a:07:03:00:8d:ae:2e", "24:8a:07:03:00:8d:ae:2e"},
                       {"24:8A:07:03:00:8D:AE:2E", "24:8a:07:03:00:8d:ae:2e"},
                       {"0x248a0703008dae2e", "24:8a:07:03:00:8d:ae:2e"},
                       {"248a:0703:008d:ae2e", "24:8a:07:03:00:8d:ae:2e"},
                       {"0x0000000000000000", "00:00:00:00:00:00:00:00"},
                       {"ff:ff:ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff:ff:ff"}});
    EXPECT_EQ(Guid::parse("0x0123456789abcdef").value(), Guid{0x0123456789abcdef});
}

TEST(Guid, RefusesWhatIsNone) {
    expect_refused<Guid>({"", "0x", "248a0703008dae2e", "0X248a0703008dae2e", "0x248a0703008dae2",
                          "0x248a0703008dae2e0", "0x-48a0703008dae2e", "24:8a:07:03:00:8d:ae",
                          "24:8a:07:03:00:8d:ae:2e:00", "24-8a-07-03-00-8d-ae-2e",
                          "24:8a:07:03:00:8d:ae:2g", "248a:0703:008d", "248a:0703:008d:ae2e:0000",
                          "248a-0703-008d-ae2e", "248a:0703:008d:ae2", "248a0703:008dae2e",
                          "24:8a:07:03:00:8d:ae:+2", "24:8a:07:03:00:8d:ae:2\0"sv,
                          "\xff\xff:8a:07:03:00:8d:ae:2e"});
}

}  // namespace
}  // namespace vfmgr
