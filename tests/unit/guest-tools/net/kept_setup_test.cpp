// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/kept_setup.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "guest-tools/net/kept_setup.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Kept : public testing::Test {
  protected:
    static constexpr char const* networkd_name = "etc/systemd/network/05-vf-guest-3f9c2b1d.network";
    static constexpr char const* udev_name = "etc/udev/rules.d/70-vf-guest-3f9c2b1d.rules";
    static constexpr char const* manager_name =
        "etc/NetworkManager/system-connections/vf-guest-3f9c2b1d.nmconnection";

    static GuestAttachment attached_vf() {
        GuestAttachment attachment;
        attachment.attachment = "3f9c2b1d";
        attachment.mac = MacAddress::parse("52:54:00:11:22:33").value();
        attachment.address = IpAddress::parse("192.168.100.10").value();
        return attachment;
    }
    void runs(char const* service) { fs::create_directories(root_.path() / "run" / service); }
    void put(char const* name, std::string const& text) {
        fs::create_directories((root_.path() / name).parent_path());
        std::ofstream(root_.path() / name) << text;
    }
    std::string text(char const* name) {
        std::ostringstream text;
        text << std::ifstream(root_.path() / name).rdbuf();
        return text.str();
    }
    mode_t mode(char const* name) {
        struct stat found{};
        ::stat(root_.file(name).c_str(), &found);
        return found.st_mode & 07777U;
    }
    bool is_there(char const* name) { return fs::exists(root_.path() / name); }
    std::vector<std::string> taken_commands() { return std::exchange(commands_, {}); }

    test::TemporaryFolder const root_;
    std::vector<std::string> commands_;
    KeptSetup const kept_{{root_.path() / "etc", root_.path() / "run"},
                          [this](std::vector<std::string> const& command) -> Result<void> {
                              std::string line;
                              for (auto const& word : command) line += word + " ";
                              commands_.push_back(line);
                              return {};
                          }};
};

TEST_F(Kept, NothingWhereNeitherServiceRuns) {
    ASSERT_TRUE(kept_.keep(attached_vf()));
    EXPECT_THAT(commands_, IsEmpty());
    EXPECT_FALSE(is_there("etc"));
}

TEST_F(Kept, NetworkdHearsOfAChangeOnly) {
    runs("systemd/netif/state");
    auto const previous = ::umask(0077);
    ASSERT_TRUE(kept_.keep(attached_vf()));
    ::umask(previous);
    EXPECT_EQ(text(networkd_name), networkd_text(attached_vf()));
    EXPECT_EQ(mode(networkd_name), 0644U) << "networkd is not root";
    EXPECT_FALSE(is_there(manager_name));
    EXPECT_THAT(taken_commands(), ElementsAre("networkctl reload "));
    ASSERT_TRUE(kept_.keep(attached_vf()));
    EXPECT_THAT(taken_commands(), IsEmpty());
    auto changed = attached_vf();
    changed.mtu = 9000;
    ASSERT_TRUE(kept_.keep(changed));
    EXPECT_EQ(text(networkd_name), networkd_text(changed));
    EXPECT_THAT(taken_commands(), ElementsAre("networkctl reload "));
}

TEST_F(Kept, NetworkManagerUsesItsProfileAtOnce) {
    runs("NetworkManager");
    ASSERT_TRUE(kept_.keep(attached_vf()));
    EXPECT_EQ(text(manager_name), network_manager_text(attached_vf()));
    EXPECT_EQ(mode(manager_name), 0600U) << "NetworkManager reads no others";
    EXPECT_FALSE(is_there(networkd_name));
    EXPECT_THAT(commands_, ElementsAre("nmcli connection load " + root_.file(manager_name) + " ",
                                       "nmcli --wait 10 connection up vf-guest-3f9c2b1d "));
}

TEST_F(Kept, AProfileIsKeptAlsoBeforeItsDeviceIsThere) {
    runs("NetworkManager");
    KeptSetup const kept({root_.path() / "etc", root_.path() / "run"},
                         [](std::vector<std::string> const& command) -> Result<void> {
                             if (command[1] == "connection") return {};
                             return fail(Problem::unsupported, "no device has this MAC");
                         });
    EXPECT_TRUE(kept.keep(attached_vf()));
    EXPECT_TRUE(is_there(manager_name));
}

TEST_F(Kept, AServiceThatDoesNotListenIsNamed) {
    runs("systemd/netif/state");
    KeptSetup const kept({root_.path() / "etc", root_.path() / "run"},
                         [](std::vector<std::string> const&) -> Result<void> {
                             return fail(Problem::timed_out,
                                         "networkctl did not end in time and was killed");
                         });
    auto const told = kept.keep(attached_vf());
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().detail, "networkctl did not end in time and was killed");
}

TEST_F(Kept, GoesWithTheAttachment) {
    runs("systemd/netif/state");
    runs("NetworkManager");
    auto other = attached_vf();
    other.attachment = "77777777";
    ASSERT_TRUE(kept_.keep(attached_vf()));
    ASSERT_TRUE(kept_.keep(other));
    taken_commands();
    ASSERT_TRUE(kept_.keep_only({attached_vf(), other}));
    EXPECT_THAT(taken_commands(), IsEmpty());
    ASSERT_TRUE(kept_.keep_only({other}));
    EXPECT_FALSE(is_there(networkd_name));
    EXPECT_FALSE(is_there(manager_name));
    EXPECT_TRUE(is_there("etc/systemd/network/05-vf-guest-77777777.network"));
    EXPECT_THAT(taken_commands(), ElementsAre("networkctl reload ", "nmcli connection reload "));
}

TEST_F(Kept, OnInfiniBandUdevMarksThePortBeforeNetworkdLooksForIt) {
    runs("udev/control");
    runs("systemd/netif/state");
    ASSERT_TRUE(kept_.keep(attached_vf()));
    EXPECT_FALSE(is_there(udev_name));
    taken_commands();
    auto attachment = attached_vf();
    attachment.mac.reset();
    attachment.guid = Guid{0x0202'c9ff'fe11'0002};
    ASSERT_TRUE(kept_.keep(attachment));
    EXPECT_EQ(text(udev_name), udev_text(attachment));
    EXPECT_EQ(text(networkd_name), networkd_text(attachment));
    EXPECT_THAT(taken_commands(),
                ElementsAre("udevadm control --reload ",
                            "udevadm trigger --settle --action=change --subsystem-match=net ",
                            "networkctl reload "));
    ASSERT_TRUE(kept_.keep_only({}));
    EXPECT_FALSE(is_there(udev_name));
    EXPECT_THAT(taken_commands(), ElementsAre("udevadm control --reload ", "networkctl reload "));
}

TEST_F(Kept, SomebodyElsesFileStays) {
    runs("systemd/netif/state");
    put(networkd_name, "[Match]\nName=*\n");
    auto const kept = kept_.keep(attached_vf());
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().problem, Problem::conflict);
    EXPECT_THAT(kept.error().detail,
                HasSubstr("05-vf-guest-3f9c2b1d.network was not written by vf-guest"));
    ASSERT_TRUE(kept_.keep_only({}));
    EXPECT_EQ(text(networkd_name), "[Match]\nName=*\n");
    EXPECT_THAT(commands_, IsEmpty());
}

TEST_F(Kept, ANameThatLeadsElsewhereIsRefused) {
    runs("systemd/netif/state");
    for (auto const* name : {"", "../../passwd", "a/b", "a b", "a\n"}) {
        auto attachment = attached_vf();
        attachment.attachment = name;
        EXPECT_FALSE(kept_.keep(attachment)) << name;
    }
    EXPECT_FALSE(is_there("etc"));
}

TEST_F(Kept, AnUnwritableFolderIsNamedWithTheRemedy) {
    runs("systemd/netif/state");
    put("etc/systemd/network", "a file, no folder");
    auto const kept = kept_.keep(attached_vf());
    ASSERT_FALSE(kept);
    EXPECT_THAT(kept.error().detail, HasSubstr("etc/systemd/network"));
    EXPECT_THAT(kept.error().remedy, HasSubstr("ReadWritePaths="));
}

}  // namespace
}  // namespace vfmgr::guest
