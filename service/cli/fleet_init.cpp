// SPDX-License-Identifier: Apache-2.0
// The files of a new fleet's machines: a CA, and for each etcd member and each replica of
// vfmgr-fleetd its certificate and configuration, laid out as the machine's root folder. Works
// without a daemon. What is there already stays, so a replica is added by the same command with one
// more --replica.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

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
    std::vector<std::string> etcd, replicas;
    std::uint32_t days = 365;
};

struct NewFleet {
    Path folder;
    std::string id;  // of the fleet
    std::vector<Machine> etcd, replicas;
    http::CertificateAuthority authority;
    std::string ca;  // PEM
    std::chrono::days lasts{};
};

Result<std::vector<Machine>> machines_of(std::vector<std::string> const& texts) {
    std::vector<Machine> all;
    for (auto const& text : texts) {
        auto const equals = text.find('=');
        Machine one{text.substr(0, equals),
                    equals == text.npos ? text.substr(0, equals) : text.substr(equals + 1)};
        if (!can_be_a_fleet_hosts(one.name) || !valid_host(one.address))
            return fail(Problem::invalid_request, fmt::format("'{}' is not NAME=ADDRESS", text),
                        fmt::format("write e1=10.0.0.1; the name {}", rule_of_fleet_host_names));
        all.push_back(std::move(one));
    }
    return all;
}

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

constexpr std::string_view replica_drop_in = R"([Service]
LoadCredential=replica.pem:/etc/vfmgr-fleet/replica.pem
LoadCredential=replica.key:/etc/vfmgr-fleet/replica.key
)";

// Where it is reached, and nowhere else; by a name it is reached at any address.
std::string listens_at(std::string const& address) {
    return IpAddress::parse(address) ? fmt::format("address = \"{}\"\n", address) : "";
}

std::string replica_settings(NewFleet const& fleet, Machine const& replica) {
    std::vector<std::string> endpoints;
    for (auto const& one : fleet.etcd)
        endpoints.push_back(fmt::format("\"{}\"", url_of(one.address, etcd_client_port)));
    return fmt::format(R"(# Made by: vfctl fleet init. fleetd.toml(5) has all settings.
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
                       fmt::join(endpoints, ", "), listens_at(replica.address));
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

Result<void> make_member(NewFleet const& fleet, Machine const& member) {
    auto const root = fleet.folder / "etcd" / member.name;
    auto const keys = root / "etc/vfmgr-etcd";
    VFMGR_CHECK(certify(fleet, keys, "member",
                        {.common_name = "etcd-" + member.name, .names = names_of(member)}));
    VFMGR_CHECK(write(keys / "ca.pem", fleet.ca));
    VFMGR_CHECK(write(root / "etc/default/etcd", etcd_environment(fleet, member)));
    return write(root / "etc/systemd/system/etcd.service.d/vfmgr.conf", etcd_drop_in);
}

Result<void> make_replica(NewFleet const& fleet, Machine const& replica) {
    auto const root = fleet.folder / "replica" / replica.name;
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
    VFMGR_TRY(fleet.etcd, machines_of(arguments.etcd));
    VFMGR_TRY(fleet.replicas, machines_of(arguments.replicas));
    VFMGR_CHECK(begin_or_continue(fleet));
    for (auto const& member : fleet.etcd) VFMGR_CHECK(make_member(fleet, member));
    for (auto const& replica : fleet.replicas) VFMGR_CHECK(make_replica(fleet, replica));
    print_sentence(
        fmt::format("fleet {}: copy etcd/NAME/etc and replica/NAME/etc of {} into /etc of each "
                    "machine; keep ca.key where nobody else reads it, no machine needs it",
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
    init->add_option("--replica", arguments.replicas,
                     "NAME=ADDRESS of each machine that runs vfmgr-fleetd; may be repeated")
        ->type_name("REPLICA")
        ->required();
    init->add_option("--days", arguments.days, "days for which certificates are valid")
        ->check(CLI::Range(1, 3650));
}

}  // namespace vfmgr
