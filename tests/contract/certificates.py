# SPDX-License-Identifier: Apache-2.0
"""A CA of the tests' own, by the program openssl: certificates of clients, and revocation lists."""

import subprocess

CONFIG = """[ca]
default_ca = ours
[ours]
database = {folder}/index.txt
new_certs_dir = {folder}
serial = {folder}/serial
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
default_crl_days = 1
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""


class Authority:
    def __init__(self, folder):
        self.folder, self.file, self.crl = folder, folder / "ca.pem", folder / "crl.pem"
        (folder / "index.txt").write_text("")
        (folder / "serial").write_text("01\n")
        (folder / "ca.cnf").write_text(CONFIG.format(folder=folder))
        self.make("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                  "-keyout", folder / "ca.key", "-out", self.file, "-days", "2", "-subj", "/CN=ca")
        self.list()

    def make(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    def issue(self, name, alternatives="", usage="clientAuth"):
        """Returns the files of a certificate and its key."""
        stem = self.folder / name
        extensions = ["-addext", f"extendedKeyUsage={usage}"]
        if alternatives:
            extensions += ["-addext", f"subjectAltName={alternatives}"]
        self.make("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                  "-keyout", f"{stem}.key", "-out", f"{stem}.csr", "-subj", f"/CN={name}",
                  *extensions)
        self.make("ca", "-batch", "-config", self.folder / "ca.cnf", "-in", f"{stem}.csr",
                  "-out", f"{stem}.crt", "-notext", "-days", "1")
        return f"{stem}.crt", f"{stem}.key"

    def list(self):
        self.make("ca", "-config", self.folder / "ca.cnf", "-gencrl", "-out", self.crl)

    def revoke(self, certificate):
        self.make("ca", "-config", self.folder / "ca.cnf", "-revoke", certificate)
        self.list()
