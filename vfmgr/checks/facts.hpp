// SPDX-License-Identifier: Apache-2.0
// What was read from a machine, as it was read: bytes of files, targets of links, names in folders,
// answers of netlink, output of commands. All that a check knows comes from here, so that saved
// facts (a bundle, bundle.hpp) give the same verdicts elsewhere.
// A value; any thread.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "api/types/check.hpp"

namespace vfmgr::checks {

// Why something is not known: the errno of reading it, or 0 when nobody tried.
struct Unknown {
    std::string source;
    int error = 0;
    [[nodiscard]] bool absent() const;  // ENOENT: that is known
    bool operator==(Unknown const&) const = default;
};
// "/dev/kmsg: EPERM", "/proc/cpuinfo was not collected".
[[nodiscard]] std::string to_string(Unknown const& unknown);
template <class T>
using Known = tl::expected<T, Unknown>;
using Names = std::span<std::string const>;

// Bytes, or the errno in place of them.
struct Fact {
    std::string bytes;
    int error = 0;
    bool operator==(Fact const&) const = default;
};

struct FolderFact {
    std::vector<std::string> names;  // sorted
    int error = 0;
    bool operator==(FolderFact const&) const = default;
};

struct CommandFact {
    std::string out, err;
    int exit_status = 0;  // 128 + signal when one ended it
    int error = 0;        // it could not be run: ENOENT, or ETIMEDOUT and was killed
    bool operator==(CommandFact const&) const = default;
};

// Messages of an answer, each behind its nlmsghdr; or the errno.
struct NetlinkFact {
    std::vector<std::string> payloads;
    int error = 0;
    bool operator==(NetlinkFact const&) const = default;
};

// What facts are worth as a witness.
enum class Provenance {
    live,         // this machine
    lab,          // collected in the project's emulated host
    recorded,     // collected on a real machine by other tools
    transcribed,  // by hand from a published source
    synthetic,    // made up
};

struct Facts {
    CheckedMachine machine = CheckedMachine::host;
    Provenance provenance = Provenance::live;
    std::string source;  // of transcribed and recorded ones: whose
    Time collected_at{};

    // What was looked for, as wanted.hpp writes it: what matches and is not below was absent. "*"
    // alone is everything.
    std::set<std::string, std::less<>> looked_for;
    std::map<std::string, Fact, std::less<>> files;
    std::map<std::string, Fact, std::less<>> links;
    std::map<std::string, FolderFact, std::less<>> folders;
    std::map<std::string, NetlinkFact, std::less<>> netlink;   // by request: "RTM_GETADDR"
    std::map<std::string, CommandFact, std::less<>> commands;  // by command line
    bool operator==(Facts const&) const = default;

    // A file's bytes without the final newline.
    [[nodiscard]] Known<std::string_view> text(std::string_view path) const;
    // Where a link points.
    [[nodiscard]] Known<std::string_view> target(std::string_view path) const;
    // Names in a folder; a folder that is not there has none.
    [[nodiscard]] Known<Names> names(std::string_view path) const;
    [[nodiscard]] Known<CommandFact const*> command(std::string_view line) const;
    [[nodiscard]] Known<Names> answers(std::string_view request) const;

  private:
    // For what is in none of the maps: absent where it was looked for.
    [[nodiscard]] Unknown missing(std::string_view name) const;
};

// A file or folder pattern as in wanted.hpp: "*" and "?" and "[…]" within one part of the path.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);

}  // namespace vfmgr::checks
