#!/usr/bin/env python3
"""Checks LTFS 2.4 volumes on cartridges of the virtual library, with no code of Reelway's: only the standard, the tape library's file format and Python.

    ltfs_check.py CARTRIDGE...        exit status 0: all consistent; 1: findings, one a line

A volume must have been unmounted (a server that ended in order has done so): both partitions end with an index, and the cartridge memory says so. `Volume` is
the library form: `findings` names what is wrong, `objects()` gives the S3 objects that lie there, bundled ones too.
"""
import base64
import binascii
import dataclasses
import hashlib
import io
import json
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import unicodedata
import urllib.parse
import xml.etree.ElementTree as etree

import google_crc32c

BLOCK, PATTERN, FILEMARK = 1, 2, 3
HEADER, RECORD = struct.Struct("<8sQII40x"), struct.Struct("<B3xIIIQQII")
MAGIC, PATTERN_BYTES = b"RWTAPE01", 64
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
STORED_RESERVED = re.compile(r"ltfs\.(hash\.(crc32|md5|sha1|sha256|sha512)sum|permissions\..*|spannedFileOffset|mediaPool\.name)$")
TIMES = ["creationtime", "changetime", "modifytime", "accesstime", "backuptime"]
INDEX_ORDER = ["creator", "comment", "volumeuuid", "generationnumber", "updatetime", "location", "previousgenerationlocation", "allowpolicyupdate",
               "dataplacementpolicy", "highestfileuid", "volumelockstate", "directory"]
DIRECTORY_ORDER = ["name", "readonly", *TIMES, "fileuid", "extendedattributes", "contents"]
FILE_ORDER = ["name", "length", "readonly", *TIMES, "fileuid", "extendedattributes", "extentinfo", "symlink"]
OPTIONAL = {"comment", "previousgenerationlocation", "dataplacementpolicy", "extendedattributes", "extentinfo", "symlink"}
XATTR_BYTES_MAX = 4096
NAME_POINTS_MAX = 255


class Broken(Exception):
    """What makes further reading of a volume pointless."""


# ---- the cartridge as the virtual library keeps it (docs/tape.md, src/vtl/README.md) ----

class Partition:
    """Records by block number: (kind, length); bytes on demand, each block's CRC32C compared."""

    def __init__(self, folder, number):
        self.name = f"partition {number}"
        try:
            raw = (folder / f"p{number}.index").read_bytes()
            self.data = open(folder / f"p{number}.data", "rb")  # noqa: SIM115
        except OSError as error:
            raise Broken(f"{self.name}: {error}") from None
        if len(raw) < HEADER.size:
            raise Broken(f"{self.name}: the index file has no header")
        magic, synced, _, crc = HEADER.unpack_from(raw)
        if magic != MAGIC or google_crc32c.value(raw[:20]) != crc:
            raise Broken(f"{self.name}: the index file's header is damaged")
        self.records, position, offset, marks = [], 0, 0, 0
        if len(raw) != HEADER.size + synced * RECORD.size:
            raise Broken(f"{self.name}: {len(raw)} bytes of index for {synced} records")
        for number in range(synced):
            at = HEADER.size + number * RECORD.size
            kind, length, block_crc, _, where, before, marks_before, own = RECORD.unpack_from(raw, at)
            if google_crc32c.value(raw[at:at + RECORD.size - 4]) != own or (where, before, marks_before) != (offset, position, marks):
                raise Broken(f"{self.name}: record {number} is damaged")
            self.records.append((kind, length, block_crc, where))
            position, marks = position + length, marks + (kind == FILEMARK)
            offset += {BLOCK: length, PATTERN: PATTERN_BYTES, FILEMARK: 0}[kind]

    def is_filemark(self, number):
        return self.records[number][0] == FILEMARK

    def length(self, number):
        return self.records[number][1]

    def block(self, number):
        if number >= len(self.records) or self.is_filemark(number):
            raise Broken(f"{self.name}: no block {number}")
        kind, length, crc, where = self.records[number]
        self.data.seek(where)
        data = self.data.read(length if kind == BLOCK else PATTERN_BYTES)
        if kind == PATTERN:
            data = (data * (length // PATTERN_BYTES + 1))[:length]
        if len(data) != length or google_crc32c.value(data) != crc:
            raise Broken(f"{self.name}: block {number} fails its checksum")
        return data


def read_memory(folder):
    """Plain values by name, and the attributes that hosts wrote: {(partition, id): bytes}."""
    values, attributes = {}, {}
    for line in (folder / "memory").read_text().splitlines():
        words = line.split(" ")
        if words[0] == "attribute":
            attributes[int(words[1]), int(words[2])] = bytes.fromhex(words[4] if len(words) > 4 else "")
        else:
            values[words[0]] = words[1]
    return values, attributes


# ---- XML ----

def parse_xml(data, what):
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise Broken(f"{what}: a document type")
    try:
        data.decode()
        return etree.fromstring(data)
    except (etree.ParseError, UnicodeDecodeError) as error:
        raise Broken(f"{what}: {error}") from None


def text_of(element, path):
    found = element.find(path)
    if found is None:
        raise Broken(f"{element.tag}: no {path}")
    return found.text or ""


def number_of(element, path):
    text = text_of(element, path)
    if not re.fullmatch(r"\d{1,20}", text):
        raise Broken(f"{element.tag}/{path}: {text!r} is no number")
    return int(text)


def location_of(element, path):
    return text_of(element, f"{path}/partition"), number_of(element, f"{path}/startblock")


def decoded(element):
    text = element.text or ""
    return urllib.parse.unquote_to_bytes(text).decode("utf-8", "surrogateescape") if element.get("percentencoded") == "true" else text


@dataclasses.dataclass
class Extent:
    file_offset: int
    partition: str
    start_block: int
    byte_offset: int
    byte_count: int


@dataclasses.dataclass
class File:
    path: str
    length: int
    uid: int
    extents: list
    attributes: dict
    symlink: bool = False


@dataclasses.dataclass
class Object:
    """One copy of an object on a volume."""
    bucket: str
    key: bytes
    generation: str
    path: str
    sha256: str
    read: object   # () -> bytes


@dataclasses.dataclass
class Index:
    partition: str
    block: int
    generation: int
    highest_uid: int
    element: etree.Element
    previous: tuple = None
    files: dict = dataclasses.field(default_factory=dict)
    uids: set = dataclasses.field(default_factory=set)


def same_tree(one, other):
    return etree.tostring(one.element.find("directory")) == etree.tostring(other.element.find("directory"))


class Volume:
    def __init__(self, folder):
        self.folder, self.barcode = pathlib.Path(folder), pathlib.Path(folder).name
        self.findings, self.partitions, self.data_blocks, self.indexes = [], {}, {}, {}
        self.index = None
        self.bundles = {}    # path -> {generation: Object}
        self.manifests = []  # bodies as lists of fields, in order
        try:
            self.values, self.memory = read_memory(self.folder)
            self.check_labels()
            for letter in (self.index_letter, self.data_letter):
                self.split_content(letter)
            self.check_index_chain()
            self.check_contents()
            self.check_manifests()
            self.check_coherency()
        except (Broken, OSError, ValueError) as error:
            self.find(str(error))

    def find(self, text):
        self.findings.append(f"{self.barcode}: {text}")

    def expect(self, holds, text):
        if not holds:
            self.find(text)

    # ---- label constructs ----

    def check_labels(self):
        labels = {}
        for number in (0, 1):
            partition = Partition(self.folder, number)
            if len(partition.records) < 4 or [partition.is_filemark(at) for at in range(4)] != [False, True, False, True]:
                raise Broken(f"{partition.name}: no label construct")
            vol1 = partition.block(0)
            serial = vol1[4:10]
            shape = b"VOL1" + serial + b"L" + b" " * 13 + b"LTFS".ljust(13) + b" " * 14 + b" " * 28 + b"4"
            self.expect(vol1 == shape and re.fullmatch(rb"[A-Z0-9]{6}| {6}", serial), f"{partition.name}: VOL1 is {vol1!r}")
            self.expect(serial.decode() == self.barcode[:6], f"{partition.name}: VOL1 of {serial!r}")
            label = parse_xml(partition.block(2), f"{partition.name}: label")
            self.expect(label.tag == "ltfslabel" and label.get("version") == "2.4.0", f"{partition.name}: label of {label.tag} {label.get('version')}")
            labels[number] = {path: text_of(label, path) for path in ("creator", "formattime", "volumeuuid", "location/partition", "partitions/index",
                                                                        "partitions/data", "blocksize", "compression")}
            self.partitions[labels[number]["location/partition"]] = partition
        first = labels[0]
        self.uuid, self.block_bytes = first["volumeuuid"], int(first["blocksize"])
        self.index_letter, self.data_letter = first["partitions/index"], first["partitions/data"]
        differing = {key for key in first if first[key] != labels[1][key]}
        self.expect(differing == {"location/partition"}, f"the labels differ in {sorted(differing)}")
        self.expect(UUID.fullmatch(self.uuid), f"label: UUID {self.uuid!r}")
        self.expect(TIME.fullmatch(first["formattime"]), f"label: formattime {first['formattime']!r}")
        self.expect(self.block_bytes >= 4096 and first["compression"] in ("true", "false"), "label: blocksize or compression")
        self.expect(0 < len(first["creator"]) <= 1024 and first["creator"].count(" - ") >= 2, f"label: creator {first['creator']!r}")
        if set(self.partitions) != {self.index_letter, self.data_letter} or not all(re.fullmatch("[a-z]", each) for each in self.partitions):
            raise Broken(f"labels: partitions {sorted(self.partitions)} are not the map's")

    # ---- content areas ----

    def split_content(self, letter):
        """Data blocks and index constructs; a complete partition ends with the latter."""
        partition = self.partitions[letter]
        marks = [at for at in range(4, len(partition.records)) if partition.is_filemark(at)]
        if len(marks) < 2 or len(marks) % 2 or marks[-1] != len(partition.records) - 1:
            raise Broken(f"{partition.name} is not complete: it does not end with an index")
        inside, start = set(), 4
        self.indexes[letter] = []
        for opens, closes in zip(marks[::2], marks[1::2], strict=True):
            inside.update(range(start, opens))
            blocks = range(opens + 1, closes)
            lengths = [partition.length(at) for at in blocks]
            self.expect(lengths and set(lengths[:-1]) <= {self.block_bytes} and lengths[-1] <= self.block_bytes, f"{partition.name}: index records {lengths}")
            self.indexes[letter].append(self.read_index(letter, opens + 1, b"".join(map(partition.block, blocks))))
            start = closes + 1
        self.data_blocks[letter] = inside

    def read_index(self, letter, block, data):
        what = f"index at {letter}({block})"
        root = parse_xml(data, what)
        self.expect(root.tag == "ltfsindex" and root.get("version") == "2.4.0", f"{what}: {root.tag} {root.get('version')}")
        self.check_children(root, INDEX_ORDER, what)
        index = Index(letter, block, number_of(root, "generationnumber"), number_of(root, "highestfileuid"), root)
        self.expect(text_of(root, "volumeuuid") == self.uuid, f"{what}: another volume's UUID")
        self.expect(0 < len(text_of(root, "creator")) <= 1024, f"{what}: creator")
        self.expect(TIME.fullmatch(text_of(root, "updatetime")), f"{what}: updatetime")
        self.expect(text_of(root, "allowpolicyupdate") in ("true", "false"), f"{what}: allowpolicyupdate")
        self.expect(text_of(root, "volumelockstate") in ("unlocked", "locked", "permlocked"), f"{what}: volumelockstate")
        self.expect(location_of(root, "location") == (letter, block), f"{what}: says it stands at {location_of(root, 'location')}")
        if root.find("previousgenerationlocation") is not None:
            index.previous = location_of(root, "previousgenerationlocation")
        self.walk(index, root.find("directory"), "", what)
        self.expect(index.uids and max(index.uids) <= index.highest_uid, f"{what}: a fileuid over highestfileuid {index.highest_uid}")
        return index

    def check_children(self, element, order, what):
        tags = [child.tag for child in element]
        wanted = [tag for tag in order if tag in tags or tag not in OPTIONAL]
        self.expect([tag for tag in tags if tag in order] == wanted, f"{what}: {element.tag} has {tags}")

    def name_of(self, element, what):
        name = element.find("name")
        text = decoded(name)
        if name.get("percentencoded") == "true":
            plain = re.sub("%[0-9A-Fa-f]{2}", "", name.text or "")
            self.expect(re.fullmatch("[ -~]*", plain) and not set(plain) & set(":%"), f"{what}: encoded name {name.text!r}")
            self.expect(":" in text or NOT_XML.search(text), f"{what}: {name.text!r} needs no encoding")
        else:
            self.expect(":" not in text, f"{what}: {text!r} needs encoding")
        return text

    def check_name(self, name, taken, what):
        self.expect(name not in ("", ".", "..") and not set(name) & {"/", "\0"} and len(name) <= NAME_POINTS_MAX, f"{what}: name {name!r}")
        self.expect(unicodedata.normalize("NFC", name) == name and not re.search("[\ud800-\udfff]", name), f"{what}: {name!r} is not in form C")
        self.expect(name not in taken, f"{what}: two of {name!r}")
        taken.add(name)

    def check_entry(self, index, element, what):
        for tag in TIMES:
            self.expect(TIME.fullmatch(text_of(element, tag)), f"{what}: {tag} {text_of(element, tag)!r}")
        self.expect(text_of(element, "readonly") in ("true", "false"), f"{what}: readonly")
        uid = number_of(element, "fileuid")
        self.expect(uid > 0 and uid not in index.uids, f"{what}: fileuid {uid} is not its own")
        index.uids.add(uid)
        attributes = {}
        for xattr in element.iterfind("extendedattributes/xattr"):
            self.check_children(xattr, ["key", "value"], what)
            key, value = decoded(xattr.find("key")), xattr.find("value")
            kind = value.get("type", "text")
            self.expect(kind in ("text", "base64"), f"{what}: {key} of type {kind}")
            try:
                data = base64.b64decode(value.text or "", validate=True) if kind == "base64" else (value.text or "").encode()
            except binascii.Error:
                raise Broken(f"{what}: {key} is no base64") from None
            self.expect(len(data) <= XATTR_BYTES_MAX and key not in attributes and not key.startswith("user."), f"{what}: attribute {key}")
            self.expect(not key.startswith("ltfs.") or STORED_RESERVED.match(key), f"{what}: reserved attribute {key}")
            attributes[key] = data
        return uid, attributes

    def walk(self, index, directory, path, what):
        """Depth first, without recursion limits of its own: LTFS paths are short."""
        here = f"{what}: {path or '/'}"
        self.check_children(directory, DIRECTORY_ORDER, here)
        uid, _ = self.check_entry(index, directory, here)
        self.expect(path != "" or uid == 1, f"{here}: the root's fileuid is {uid}")
        taken = set()
        for child in directory.find("contents"):
            name = self.name_of(child, here)
            self.check_name(name, taken, here)
            if child.tag == "directory":
                self.walk(index, child, f"{path}/{name}", what)
            elif child.tag == "file":
                self.take_file(index, child, f"{path}/{name}", what)
            else:
                self.find(f"{here}: holds a {child.tag}")

    def take_file(self, index, element, path, what):
        here = f"{what}: {path}"
        self.check_children(element, FILE_ORDER, here)
        uid, attributes = self.check_entry(index, element, here)
        extents = []
        for extent in element.iterfind("extentinfo/extent"):
            self.check_children(extent, ["fileoffset", "partition", "startblock", "byteoffset", "bytecount"], here)
            extents.append(Extent(number_of(extent, "fileoffset"), text_of(extent, "partition"), number_of(extent, "startblock"),
                                  number_of(extent, "byteoffset"), number_of(extent, "bytecount")))
        file = File(path, number_of(element, "length"), uid, extents, attributes, element.find("symlink") is not None)
        self.expect(not (file.symlink and (extents or file.length)), f"{here}: a symlink with content")
        self.expect(element.find("extentinfo") is None or extents, f"{here}: an empty extentinfo")
        index.files[path] = file

    # ---- the chain of indexes ----

    def check_index_chain(self):
        data, own = self.indexes[self.data_letter], self.indexes[self.index_letter]
        before = None
        for index in data:
            what = f"index at {index.partition}({index.block})"
            self.expect(index.previous == (before and (before.partition, before.block)), f"{what}: points back to {index.previous}")
            same = before is not None and same_tree(before, index)
            self.expect(index.generation == (before.generation + (not same) if before else 1), f"{what}: generation {index.generation}")
            if before:
                self.expect(index.highest_uid >= before.highest_uid, f"{what}: highestfileuid falls")
                self.expect(all(uid > before.highest_uid for uid in index.uids - before.uids), f"{what}: a fileuid is used again")
            before = index
        self.index = last = own[-1]
        self.expect(len(own) == 1, f"{len(own)} indexes on the index partition")
        self.expect(last.previous == (before.partition, before.block), f"index partition: points back to {last.previous}, not to the last index of the data")
        self.expect(last.generation == before.generation, f"index partition: generation {last.generation}, data partition: {before.generation}")
        self.expect(same_tree(last, before) and last.highest_uid == before.highest_uid, "the indexes of both partitions name different trees")

    # ---- files ----

    def check_extents(self, file, index, used):
        here, end = file.path, 0
        for extent in sorted(file.extents, key=lambda each: each.file_offset):
            self.expect(extent.file_offset >= end and extent.byte_count > 0, f"{here}: extents overlap in the file")
            end = extent.file_offset + extent.byte_count
            partition = self.partitions.get(extent.partition)
            if partition is None:
                raise Broken(f"{here}: an extent on partition {extent.partition!r}")
            blocks = self.blocks_of(extent, partition, here)
            self.expect(extent.partition != index.partition or blocks[-1] < index.block, f"{here}: an extent behind its index")
            used.setdefault(extent.partition, []).append((blocks[0], extent.byte_offset, blocks[-1], extent, here))
        self.expect(end <= file.length, f"{here}: extents reach over its length")
        self.expect(file.symlink or end == file.length, f"{here}: {file.length} bytes, {end} of them on tape")

    def blocks_of(self, extent, partition, what):
        """Numbers of the blocks it covers: whole ones but the last, all of data."""
        wanted, blocks, number = extent.byte_offset + extent.byte_count, [], extent.start_block
        self.expect(extent.byte_offset < self.block_bytes, f"{what}: byteoffset {extent.byte_offset}")
        while wanted > 0:
            if number not in self.data_blocks[extent.partition]:
                raise Broken(f"{what}: block {extent.partition}({number}) is no data")
            length = partition.length(number)
            if length != self.block_bytes and length < wanted:
                raise Broken(f"{what}: block {extent.partition}({number}) of {length} bytes in the middle of an extent")
            blocks.append(number)
            wanted -= length
            number += 1
        return blocks

    def read(self, file):
        data = bytearray(file.length)
        for extent in file.extents:
            partition = self.partitions[extent.partition]
            piece = b"".join(map(partition.block, self.blocks_of(extent, partition, file.path)))
            data[extent.file_offset:extent.file_offset + extent.byte_count] = piece[extent.byte_offset:extent.byte_offset + extent.byte_count]
        return bytes(data)

    def check_contents(self):
        used = {}
        for index in (*self.indexes[self.data_letter], self.index):
            used.clear()
            for file in index.files.values():
                self.check_extents(file, index, used)
        for each in used.values():
            each.sort(key=lambda item: item[:2])
            for (_, _, last, extent, path), (first, offset, _, _, other) in zip(each, each[1:], strict=False):
                end = extent.byte_offset + extent.byte_count - (last - extent.start_block) * self.block_bytes
                self.expect((last, end) <= (first, offset), f"{path} and {other} share bytes on tape")
        for file in self.index.files.values():
            try:
                self.check_file(file)
            except Broken as error:
                self.find(f"{file.path}: {error}")

    def check_file(self, file):
        data = self.read(file)
        recorded = file.attributes.get("ltfs.hash.sha256sum", b"").decode()
        self.expect(recorded in ("", hashlib.sha256(data).hexdigest()), f"{file.path}: its SHA-256 is not the recorded one")
        if file.path.startswith("/.reelway/bundles/"):
            self.check_bundle(file, data)
        elif "reelway.key" in file.attributes:
            missing = {"reelway.bucket", "reelway.generation", "reelway.meta.0", "ltfs.hash.sha256sum"} - set(file.attributes)
            if missing:
                raise Broken(f"no attribute {sorted(missing)}")
            bucket, key = file.attributes["reelway.bucket"].decode(), file.attributes["reelway.key"]
            generation = file.attributes["reelway.generation"].decode()
            places = (f"/{bucket}/{key.decode('utf-8', 'surrogateescape')}", f"/.reelway/objects/{bucket}/{generation}")
            self.expect(file.path in places, f"{file.path}: is not where {bucket}/{key!r} belongs")

    # ---- bundles (docs/formats/bundle.md) ----

    def check_bundle(self, file, data):
        toc, footer = self.read_toc(file.path, data)
        members, plain = {}, hashlib.sha256()
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errors="surrogateescape") as tar:
            for member in tar:
                content = tar.extractfile(member).read()
                plain.update(content)
                if member.name != ".reelway/toc":
                    members[member.offset_data] = member, content
                else:
                    self.expect(footer and member.size == footer, f"{file.path}: its table of contents is not its last member")
        done = subprocess.run(["tar", "-xOf", "-"], input=data, capture_output=True, check=False)
        agrees = done.returncode == 0 and not done.stderr and hashlib.sha256(done.stdout).digest() == plain.digest()
        self.expect(agrees, f"{file.path}: tar says {done.returncode} {done.stderr[:200]!r}, or reads other bytes")
        self.bundles[file.path] = {}
        for line in toc:
            self.check_member(file.path, members, line)

    def read_toc(self, path, data):
        found = re.search(rb"RWTOC1\t(\d+)\t(\d+)\t(\d+)\t(\d+)\n\0*$", data[-4096:])
        if not found:
            raise Broken(f"{path}: a bundle without a footer")
        offset, length, count, crc = map(int, found.groups())
        text = data[offset:offset + length]
        lines = [line.split("\t") for line in text.decode().splitlines()]
        self.expect(google_crc32c.value(text) == crc and len(lines) == count, f"{path}: the table of contents is damaged")
        return lines, length + len(found.group().rstrip(b"\0"))

    def check_member(self, path, members, line):
        word, offset, length, sha256, generation, bucket, key, _ = line
        member, content = members.get(int(offset), (None, b""))
        if word != "member" or member is None or member.size != int(length):
            return self.find(f"{path}: the tar has no member at {offset}")
        key, bucket = urllib.parse.unquote_to_bytes(key), urllib.parse.unquote(bucket)
        headers = {name.removeprefix("SCHILY.xattr.user.reelway."): value.encode("utf-8", "surrogateescape") for name, value in member.pax_headers.items()
                   if name.startswith("SCHILY.xattr.user.reelway.")}
        true = {"generation": generation.encode(), "bucket": bucket.encode(), "key": key}
        self.expect(true.items() <= headers.items() and headers.get("sha256", sha256.encode()) == sha256.encode(), f"{path}: headers of {bucket}/{key!r}")
        self.expect(hashlib.sha256(content).hexdigest() == sha256, f"{path}: SHA-256 of {bucket}/{key!r}")
        plain = f"{bucket}/".encode() + key
        named = member.name.encode("utf-8", "surrogateescape")
        self.expect(named == plain or member.name.startswith(".reelway/odd/"), f"{path}: {bucket}/{key!r} is called {member.name}")
        self.bundles[path][generation] = Object(bucket, key, generation, path, sha256, lambda: content)

    # ---- manifests (docs/formats/manifest.md) ----

    def check_manifests(self):
        """Batches 1, 2, ... chained by their trailers; applied in order to nothing they give the index's own files."""
        previous, files = None, {}
        paths = sorted(path for path in self.index.files if path.startswith("/.reelway/batches/"))
        for number, path in enumerate(paths, 1):
            file = self.index.files[path]
            fields = self.read_manifest(path, file, number, previous)
            previous = file.extents[1].start_block
            self.apply_manifest(path, fields, files)
            files[path] = (file.uid, file.length)
            self.manifests.append(fields)
        there = {path: (file.uid, file.length) for path, file in self.index.files.items()}
        self.expect(files == there, f"the manifests tell of other files: {sorted(set(files.items()) ^ set(there.items()))[:4]}")

    def read_manifest(self, path, file, number, previous):
        self.expect(int(path.rpartition("/")[2]) == number, f"{path} where batch {number} is due")
        if len(file.extents) != 2:
            raise Broken(f"{path}: {len(file.extents)} extents")
        body_extent, trailer_extent = file.extents
        data = self.read(file)
        body, trailer = data[:body_extent.byte_count], data[body_extent.byte_count:]
        magic, crc, rest = trailer.split(b"\t", 2)
        fields = rest.decode().rstrip("\n").split("\t")
        wanted = [str(number), self.uuid, str(body_extent.start_block), str(trailer_extent.start_block), "-" if previous is None else str(previous),
                  str(len(body)), str(google_crc32c.value(body)), str(file.uid)]
        self.expect(magic == b"RWBATCH1" and int(crc) == google_crc32c.value(rest), f"{path}: the trailer is damaged")
        self.expect(fields[:-1] == wanted and TIME.fullmatch(fields[-1]), f"{path}: trailer {fields}, wanted {wanted}")
        lines = [line.split("\t") for line in body.decode().splitlines()]
        self.expect(lines[0] == ["manifest", "1", str(number), self.uuid, fields[-1]] and lines[-1] == ["end", str(len(lines) - 1)], f"{path}: its first or last line")
        return lines[1:-1]

    def apply_manifest(self, path, lines, files):
        toc = []
        for line in lines:
            word, name = line[0], urllib.parse.unquote(line[1], errors="surrogateescape")
            if word == "rename":
                files[urllib.parse.unquote(line[2], errors="surrogateescape")] = files.pop(name)
            elif word == "remove":
                del files[name]
            elif word == "file":
                files[name] = (int(line[2]), int(line[3]))
            elif word == "bundle":
                toc = list(self.bundles.get(name, {}))
            elif word == "member":
                self.expect(toc and line[4] == toc.pop(0), f"{path}: a member that its bundle has not")
            else:
                self.expect(word in ("extent", "xattr"), f"{path}: a line {word}")

    # ---- cartridge memory ----

    def check_coherency(self):
        for number, letter in ((0, self.index_letter), (1, self.data_letter)):
            value = self.memory.get((number, 0x80c), b"")
            index = self.indexes[letter][-1]
            wanted = struct.pack(">BQQQH", 8, int(self.values["change_reference"]), index.generation, index.block, 43)
            wanted += b"LTFS\0" + self.uuid.encode() + b"\0\x01"
            self.expect(value == wanted, f"cartridge memory of {letter}: {value.hex()}, wanted {wanted.hex()}")
        for attribute, text in ((0x80b, "2.4.0"), (0x806, self.barcode), (0x805, "\x81")):
            value = self.memory.get((0, attribute), b"").decode("latin-1").rstrip(" \0")
            self.expect(value == text, f"cartridge memory: {attribute:04x} is {value!r}")

    # ---- objects ----

    def objects(self):
        """Every object copy on the volume, older generations and dead ones too."""
        for file in self.index.files.values():
            if "reelway.key" in file.attributes:
                yield Object(file.attributes["reelway.bucket"].decode(), file.attributes["reelway.key"], file.attributes["reelway.generation"].decode(),
                             file.path, file.attributes["ltfs.hash.sha256sum"].decode(), lambda file=file: self.read(file))
        for members in self.bundles.values():
            yield from members.values()

    def dead(self):
        """Generations that the journals name (docs/formats/journal.md)."""
        paths = [path for path in self.index.files if path.startswith("/.reelway/journal/")]
        lines = [json.loads(line) for path in paths for line in self.read(self.index.files[path]).splitlines()]
        return {line["dead"]["generation"] for line in lines if "dead" in line}


def is_blank(folder):
    """Never written: no record on any partition."""
    return all(path.stat().st_size <= HEADER.size for path in pathlib.Path(folder).glob("p*.index"))


def main():
    findings = []
    for folder in sys.argv[1:]:
        if is_blank(folder):
            print(f"{folder}: blank")
            continue
        volume = Volume(folder)
        findings += volume.findings
        files = len(volume.index.files) if volume.index else 0
        print(f"{folder}: {files} files, {sum(map(len, volume.bundles.values()))} bundled objects, {len(volume.findings)} findings")
    print("\n".join(findings) or "consistent")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
