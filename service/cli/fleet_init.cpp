// SPDX-License-Identifier: Apache-2.0
// The files of a new fleet's machines: a CA, and in machines/NAME what the root folder of that
// machine gets: the certificates and configurations of an etcd member and of a replica of
// vfmgr-fleetd, and the address of a host's API. Works without a daemon. What is there already
// stays, so a machine is added by the same command with one more option.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "api/http/authority.hpp"
#include "api/os/file.hpp"
#include "api/os/random.hpp"
#include "api/types/addresses.hpp"
#include "api/types/fleet_host.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/fleet.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

using Path = std::filesystem::path;

// "e1=10.0.0.1": a machine's name, and where others reach it.
struct Machine {
    std::string name;
    std::string address;
};

struct InitArguments {
    std::string folder;
    std::vector<std::string> etcd, replicas, hosts;
    std::uint32_t days = 365;
};

struct NewFleet {
    Path folder;
    std::string id;  // of the fleet
    std::vector<Machine> etcd, replicas, hosts;
    http::CertificateAuthority authority;
    std::string ca;  // PEM
    std::chrono::days lasts{};
};

// A name that was given before needs no address, and has no other.
class Machines {
  public:
    Result<std::vector<Machine>> read(std::vector<std::string> const& texts) {
        std::vector<Machine> all;
        for (auto const& text : texts) {
            VFMGR_TRY(auto one, read(text));
            all.push_back(std::move(one));
        }
        return all;
    }

  private:
    Result<Machine> read(std::string const& text) {
        auto const equals = text.find('=');
        Machine one{text.substr(0, equals),
                    equals == text.npos ? text.substr(0, equals) : text.substr(equals + 1)};
        if (!can_be_a_fleet_hosts(one.name) || !valid_host(one.address))
            return fail(Problem::invalid_request, fmt::format("'{}' is not NAME=ADDRESS", text),
                        fmt::format("write e1=10.0.0.1; the name {}", rule_of_fleet_host_names));
        auto const [known, is_new] = addresses_.emplace(one.name, one.address);
        if (equals == text.npos) one.address = known->second;
        if (one.address == known->second) return one;
        return fail(Problem::invalid_request,
                    fmt::format("{} is both at {} and at {}", one.name, known->second, one.address),
                    "give each machine one name and one address; they may be the same machine's in "
                    "--etcd, --replica and --host-at");
    }

    std::map<std::string, std::string> addresses_;
};

std::string uuid() {
    auto text = random_hex(16);
    text[12] = '4';  // RFC 9562: version 4, variant 10
    text[16] = "89ab"[text[16] % 4];
    for (auto const at : {20U, 16U, 12U, 8U}) text.insert(at, 1, '-');
    return text;
}

std::string url_of(std::string const& address, std::uint16_t port) {
    return fmt::format("https://{}", to_string(HostPort{address, port}));
}

std::string urls_of(std::vector<Machine> const& members, std::uint16_t port, std::string_view quote,
                    std::string_view between) {
    std::vector<std::string> all;
    for (auto const& one : members)
        all.push_back(fmt::format("{0}{1}{0}", quote, url_of(one.address, port)));
    return fmt::format("{}", fmt::join(all, between));
}

constexpr std::uint16_t etcd_client_port = 2379;
constexpr std::uint16_t etcd_peer_port = 2380;
constexpr std::uint16_t replica_port = 8480;

std::string etcd_environment(NewFleet const& fleet, Machine const& member) {
    std::vector<std::string> cluster;
    for (auto const& one : fleet.etcd)
        cluster.push_back(one.name + "=" + url_of(one.address, etcd_peer_port));
    auto const client = url_of(member.address, etcd_client_port);
    auto const peer = url_of(member.address, etcd_peer_port);
    return fmt::format(R"(# Read by Debian's etcd.service.
ETCD_NAME={}
# Not Debian's own folder: what a member finds there, it takes for its cluster.
ETCD_DATA_DIR=/var/lib/etcd/vfmgr
ETCD_INITIAL_CLUSTER={}
ETCD_INITIAL_CLUSTER_STATE={}
ETCD_INITIAL_CLUSTER_TOKEN={}
ETCD_LISTEN_CLIENT_URLS={}
ETCD_ADVERTISE_CLIENT_URLS={}
ETCD_LISTEN_PEER_URLS={}
ETCD_INITIAL_ADVERTISE_PEER_URLS={}
# Only certificates that the fleet's CA signed are let in, by clients and by members.
ETCD_CLIENT_CERT_AUTH=true
ETCD_PEER_CLIENT_CERT_AUTH=true
ETCD_TRUSTED_CA_FILE=/etc/vfmgr-etcd/ca.pem
ETCD_PEER_TRUSTED_CA_FILE=/etc/vfmgr-etcd/ca.pem
# vfmgr-fleetd needs no revision that is older than a few minutes.
ETCD_AUTO_COMPACTION_MODE=periodic
ETCD_AUTO_COMPACTION_RETENTION=1h
)",
                       member.name, fmt::join(cluster, ","), "new", fleet.id, client, client, peer,
                       peer);
}

// systemd reads the key as root and gives it to the service's user alone.
constexpr std::string_view etcd_drop_in = R"([Service]
LoadCredential=member.pem:/etc/vfmgr-etcd/member.pem
LoadCredential=member.key:/etc/vfmgr-etcd/member.key
Environment=ETCD_CERT_FILE=%d/member.pem ETCD_KEY_FILE=%d/member.key
Environment=ETCD_PEER_CERT_FILE=%d/member.pem ETCD_PEER_KEY_FILE=%d/member.key
)";

// ". /etc/vfmgr-etcd/etcdctl.sh", and etcdctl speaks to this cluster.
std::string etcdctl_variables(NewFleet const& fleet) {
    return fmt::format(R"(export ETCDCTL_API=3
export ETCDCTL_ENDPOINTS={}
export ETCDCTL_CACERT=/etc/vfmgr-etcd/ca.pem
export ETCDCTL_CERT=/etc/vfmgr-etcd/member.pem
export ETCDCTL_KEY=/etc/vfmgr-etcd/member.key
)",
                       urls_of(fleet.etcd, etcd_client_port, "", ","));
}

constexpr std::string_view replica_drop_in = R"([Service]
LoadCredential=replica.pem:/etc/vfmgr-fleet/replica.pem
LoadCredential=replica.key:/etc/vfmgr-fleet/replica.key
)";

// Where it is reached, and nowhere else; by a name it is reached at any address.
std::string listens_at(std::string const& address) {
    return IpAddress::parse(address) ? fmt::format("address = \"{}\"\n", address) : "";
}

std::string replica_settings(NewFleet const& fleet, Machine const& replica) {
    return fmt::format(R"(# Made by: vfctl fleet init. vfmgr-fleetd(8) has all settings.
name = "{}"
url = "{}"

[etcd]
endpoints = [{}]

[listen.tls]
{}ca_file = "/etc/vfmgr-fleet/ca.pem"
# Where systemd puts what vfmgr-fleetd.service.d/keys.conf names.
certificate_file = "/run/credentials/vfmgr-fleetd.service/replica.pem"
key_file = "/run/credentials/vfmgr-fleetd.service/replica.key"
)",
                       replica.name, url_of(replica.address, replica_port),
                       urls_of(fleet.etcd, etcd_client_port, "\"", ", "),
                       listens_at(replica.address));
}

// Replicas reach the host's API; whoever has neither token nor certificate gets nothing there.
std::string host_settings(Machine const& host) {
    auto const address = IpAddress::parse(host.address) ? host.address : "0.0.0.0";
    return fmt::format(R"(# Made by: vfctl fleet init. vfmgr.toml(5) has all settings.
[listen.tls]
enabled = true
address = "{}"
)",
                       address);
}

Result<void> write(Path const& file, std::string_view text) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) return {};
    std::filesystem::create_directories(file.parent_path(), error);
    constexpr mode_t readable = 0644;
    auto written = replace_file(file, text, readable);
    if (!written) written.error().remedy = "choose a folder that you can write";
    return written;
}

Result<void> certify(NewFleet const& fleet, Path const& folder, std::string const& name,
                     http::CertificateRequest request) {
    http::IssuedFiles const files{folder / (name + ".pem"), folder / (name + ".key")};
    std::error_code error;
    if (std::filesystem::exists(files.certificate_file, error)) return {};
    std::filesystem::create_directories(folder, error);
    request.for_servers = request.for_clients = true;
    request.lasts = fleet.lasts;
    return http::issue(fleet.authority, request, files);
}

// What vfmgrd and etcd know a machine by: the address, and the machine itself on loopback.
std::vector<std::string> names_of(Machine const& machine) {
    std::vector<std::string> names{machine.address, "localhost", "127.0.0.1"};
    if (machine.name != machine.address) names.insert(names.begin() + 1, machine.name);
    return names;
}

Path root_of(NewFleet const& fleet, Machine const& machine) {
    return fleet.folder / "machines" / machine.name;
}

Result<void> make_member(NewFleet const& fleet, Machine const& member) {
    auto const root = root_of(fleet, member);
    auto const keys = root / "etc/vfmgr-etcd";
    VFMGR_CHECK(certify(fleet, keys, "member",
                        {.common_name = "etcd-" + member.name, .names = names_of(member)}));
    VFMGR_CHECK(write(keys / "ca.pem", fleet.ca));
    VFMGR_CHECK(write(keys / "etcdctl.sh", etcdctl_variables(fleet)));
    VFMGR_CHECK(write(root / "etc/default/etcd", etcd_environment(fleet, member)));
    return write(root / "etc/systemd/system/etcd.service.d/vfmgr.conf", etcd_drop_in);
}

Result<void> make_replica(NewFleet const& fleet, Machine const& replica) {
    auto const root = root_of(fleet, replica);
    auto const keys = root / "etc/vfmgr-fleet";
    // etcd takes the common name for its user; hosts and other replicas go by the URI.
    VFMGR_CHECK(certify(fleet, keys, "replica",
                        {.common_name = "vfmgr-fleetd",
                         .uris = {fmt::format("vfmgr://{}/replica/{}", fleet.id, replica.name)},
                         .names = names_of(replica)}));
    VFMGR_CHECK(write(keys / "ca.pem", fleet.ca));
    VFMGR_CHECK(write(root / "etc/vfmgr/fleetd.toml", replica_settings(fleet, replica)));
    return write(root / "etc/systemd/system/vfmgr-fleetd.service.d/keys.conf", replica_drop_in);
}

// The fleet's id is beside its CA, for a later run.
Result<void> begin_or_continue(NewFleet& fleet) {
    auto const id_file = fleet.folder / "fleet-id";
    fleet.authority = {fleet.folder / "ca.pem", fleet.folder / "ca.key"};
    std::error_code error;
    if (auto const id = read_file(id_file)) {
        fleet.id = id->substr(0, id->find('\n'));
    } else {
        fleet.id = uuid();
        VFMGR_TRY(fleet.authority,
                  http::make_authority(fleet.folder.string(), "vfmgr-fleet-" + fleet.id));
        VFMGR_CHECK(write(id_file, fleet.id + "\n"));
    }
    auto ca = read_file(fleet.authority.certificate_file);
    if (!ca)
        return fail(Problem::not_found,
                    fmt::format("{} can't be read", fleet.authority.certificate_file),
                    "name the folder that vfctl fleet init made");
    fleet.ca = std::move(*ca);
    return {};
}

Result<void> init_fleet(Options const& options, InitArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    NewFleet fleet;
    fleet.folder = arguments.folder;
    fleet.lasts = std::chrono::days(arguments.days);
    Machines machines;
    VFMGR_TRY(fleet.etcd, machines.read(arguments.etcd));
    VFMGR_TRY(fleet.replicas, machines.read(arguments.replicas));
    VFMGR_TRY(fleet.hosts, machines.read(arguments.hosts));
    // The services' users read what is no key, whatever this user's umask is.
    ::umask(S_IWGRP | S_IWOTH);
    VFMGR_CHECK(begin_or_continue(fleet));
    for (auto const& member : fleet.etcd) VFMGR_CHECK(make_member(fleet, member));
    for (auto const& replica : fleet.replicas) VFMGR_CHECK(make_replica(fleet, replica));
    for (auto const& host : fleet.hosts)
        VFMGR_CHECK(
            write(root_of(fleet, host) / "etc/vfmgr/conf.d/fleet.toml", host_settings(host)));
    print_sentence(
        fmt::format(
            "fleet {}: copy what is in {}/machines/NAME into / of each machine; keep ca.key "
            "where nobody else reads it, no machine needs it",
            fleet.id, arguments.folder),
        options);
    return {};
}

}  // namespace

void add_fleet_init(CLI::App& fleet, Session& session) {
    auto const [init, arguments] =
        add_command(fleet, session, "init",
                    "make the CA, certificates and configurations of a new fleet's machines",
                    init_fleet, InitArguments{});
    init->add_option("FOLDER", arguments.folder, "where they go; what is there stays")->required();
    init->add_option("--etcd", arguments.etcd,
                     "NAME=ADDRESS of each member of etcd; may be repeated")
        ->type_name("MEMBER")
        ->required();
    init->add_option(
            "--replica", arguments.replicas,
            "NAME=ADDRESS of each machine that runs vfmgr-fleetd; may be repeated; NAME alone "
            "for a member of etcd")
        ->type_name("REPLICA")
        ->required();
    init->add_option("--host-at", arguments.hosts,
                     "NAME=ADDRESS of each host whose API replicas are to reach; may be repeated")
        ->type_name("MACHINE");
    init->add_option("--days", arguments.days, "days for which certificates are valid")
        ->check(CLI::Range(1, 3650));
}

}  // namespace vfmgr
