// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/declared_vfs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "vfmgr/hypervisor/domain_xml.hpp"

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DeclaredXml declared(std::string const& metadata) {
    pugi::xml_document document;
    EXPECT_TRUE(document.load_string(
        fmt::format("<domain><metadata>{}</metadata></domain>", metadata).c_str()));
    return declared_in(document.child("domain"));
}

DeclaredXml of_ours(std::string const& elements) {
    return declared(fmt::format(
        "<vfmgr:attachments xmlns:vfmgr='urn:vfmgr:attachments'>{}</vfmgr:attachments>", elements));
}

TEST(DeclaredVfs, NameAPoolACountAndAProfile) {
    auto const found = of_ours(
        "<vfmgr:attachment pool='train' count='2' profile='quick'/>"
        "<vfmgr:attachment pool='storage'/>");
    EXPECT_FALSE(found.wrong);
    EXPECT_THAT(found.vfs, ElementsAre(DeclaredVfs{"train", 2, Profile::quick},
                                       DeclaredVfs{"storage", 1, std::nullopt}));
}

TEST(DeclaredVfs, AreOurNamespacesUnderWhateverPrefix) {
    EXPECT_THAT(declared("<a:attachments xmlns:a='urn:vfmgr:attachments'>"
                         "<a:attachment pool='train'/></a:attachments>")
                    .vfs,
                ElementsAre(DeclaredVfs{"train"}));
    EXPECT_THAT(declared("<attachments xmlns='urn:vfmgr:attachments'>"
                         "<attachment pool='train'/></attachments>")
                    .vfs,
                ElementsAre(DeclaredVfs{"train"}));
    for (auto const* others :
         {"<vfmgr:attachments xmlns:vfmgr='urn:other'><vfmgr:attachment pool='train'/>"
          "</vfmgr:attachments>",
          "<attachments><attachment pool='train'/></attachments>",
          "<vfmgr:attachments xmlns:vfmgr='urn:vfmgr:attachments'><o:attachment xmlns:o='urn:o' "
          "pool='train'/></vfmgr:attachments>",
          ""})
        EXPECT_THAT(declared(others).vfs, IsEmpty()) << others;
}

// A tenant writes the XML: what it can't decide is refused whole, and named.
TEST(DeclaredVfs, CannotBeMoreThanThat) {
    for (auto const& [element, why] :
         {std::pair{"pool='train' trust='on'", "'trust' can't be declared"},
          {"pool='train' mac='02:00:00:00:00:01'", "'mac' can't be declared"},
          {"pool='train' vlan='7'", "'vlan' can't be declared"},
          {"pool='train' count='0'", "count '0' is not from 1 to 32"},
          {"pool='train' count='33'", "count '33' is not from 1 to 32"},
          {"pool='train' profile='all'", "profile 'all' is none of"},
          {"count='1'", "'' names no pool"},
          {"pool='../train'", "'../train' names no pool"}}) {
        auto const found =
            of_ours(fmt::format("<vfmgr:attachment pool='ok'/><vfmgr:attachment {}/>", element));
        EXPECT_THAT(found.vfs, IsEmpty()) << element;
        EXPECT_THAT(found.wrong.value_or(""), HasSubstr(why));
    }
}

TEST(DeclaredVfs, AreAtMost32OfAVm) {
    auto const found = of_ours(
        "<vfmgr:attachment pool='a' count='32'/>"
        "<vfmgr:attachment pool='b'/>");
    EXPECT_EQ(found.wrong, "33 VFs are declared; a VM can have 32");
}

TEST(DeclaredVfs, AreInTheVmsInfo) {
    auto const xml = parse_domain_xml(
                         "<domain id='4'><name>a</name><uuid>u</uuid><metadata>"
                         "<v:attachments xmlns:v='urn:vfmgr:attachments'>"
                         "<v:attachment pool='train'/></v:attachments></metadata></domain>")
                         .value();
    EXPECT_THAT(vm_info(&xml, nullptr, {}).declared, ElementsAre(DeclaredVfs{"train"}));
}

}  // namespace
}  // namespace vfmgr
