// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/domain_xml.hpp"

#include <gtest/gtest.h>

#include "shorthand.hpp"
#include "vfmgr/hypervisor/domain_xml.hpp"

namespace vfmgr {
namespace {

using test::pci;

TEST(HostdevXml, Exactly) {
    EXPECT_EQ(to_xml({pci("0001:3b:1f.7"), "ua-vfmgr-00000001", std::nullopt}),
              "<hostdev mode=\"subsystem\" type=\"pci\" managed=\"no\">\n"
              "  <driver name=\"vfio\" />\n"
              "  <source>\n"
              "    <address domain=\"0x0001\" bus=\"0x3b\" slot=\"0x1f\" function=\"0x7\" />\n"
              "  </source>\n"
              "  <alias name=\"ua-vfmgr-00000001\" />\n"
              "</hostdev>\n");
}

TEST(HostdevXml, TheParserReadsItBack) {
    DomainHostdev const hostdev{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d", pci("0000:05:00.0")};
    auto const domain = parse_domain_xml("<domain><name>a</name><uuid>b</uuid><devices>" +
                                         to_xml(hostdev) + "</devices></domain>");
    ASSERT_TRUE(domain);
    ASSERT_EQ(domain->hostdevs.size(), 1u);
    EXPECT_EQ(domain->hostdevs[0], hostdev);
}

TEST(HostdevXml, AnAliasCannotBreakOut) {
    auto const xml = to_xml({pci("0000:01:10.4"), "a'\"/><evil>&", std::nullopt});
    EXPECT_EQ(xml.find("<evil>"), std::string::npos);
    auto const domain = parse_domain_xml("<domain><name>a</name><uuid>b</uuid><devices>" + xml +
                                         "</devices></domain>");
    ASSERT_TRUE(domain);
    EXPECT_EQ(domain->hostdevs.at(0).alias, "a'\"/><evil>&");
}

}  // namespace
}  // namespace vfmgr
