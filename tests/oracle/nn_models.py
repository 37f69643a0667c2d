"""Models as their checkpoints name them: a ResNet, a ViT, BERT, GPT-2, Llama and Whisper, small, in PyTorch's modules.

`test_nn_checkpoints.py` runs this file as it is, and with the imports of turnout in place of those of torch.
"""

# mypy: ignore-errors
import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, HEADS = 64, 4


def attend(q, k, v, causal=False):
    q, k, v = (t.view(t.shape[0], t.shape[1], HEADS, -1).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False), nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1), BasicBlock(8, 8, 1))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16, 1))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 10)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, WIDTH, 8, 8)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.encoder = nn.Module()
        self.encoder.pos_embedding = nn.Parameter(torch.empty(1, 17, WIDTH).normal_(std=0.02))
        self.encoder.layers = nn.Sequential()
        for i in range(3):
            self.encoder.layers.add_module(f"encoder_layer_{i}", EncoderBlock())
        self.encoder.ln = nn.LayerNorm(WIDTH, eps=1e-6)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(WIDTH, 10))

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1) + self.encoder.pos_embedding
        return self.heads(self.encoder.ln(self.encoder.layers(x))[:, 0])


def holder(**members):
    made = nn.Module()
    for name, member in members.items():
        setattr(made, name, member)
    return made


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        names = ("query", "key", "value")
        self.attention = holder(
            self=holder(**{name: nn.Linear(WIDTH, WIDTH) for name in names}),
            output=holder(dense=nn.Linear(WIDTH, WIDTH), LayerNorm=nn.LayerNorm(WIDTH, eps=1e-12)),
        )
        self.intermediate = holder(dense=nn.Linear(WIDTH, 128))
        self.output = holder(dense=nn.Linear(128, WIDTH), LayerNorm=nn.LayerNorm(WIDTH, eps=1e-12))

    def forward(self, x):
        own, out = self.attention.self, self.attention.output
        x = out.LayerNorm(x + out.dense(attend(own.query(x), own.key(x), own.value(x))))
        return self.output.LayerNorm(x + self.output.dense(F.gelu(self.intermediate.dense(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = holder(
            word_embeddings=nn.Embedding(50, WIDTH, padding_idx=0), position_embeddings=nn.Embedding(32, WIDTH),
            token_type_embeddings=nn.Embedding(2, WIDTH), LayerNorm=nn.LayerNorm(WIDTH, eps=1e-12),
        )  # fmt: skip
        self.embeddings.register_buffer("position_ids", torch.arange(32).expand((1, -1)))
        self.encoder = holder(layer=nn.ModuleList([BertLayer() for _ in range(3)]))
        self.pooler = holder(dense=nn.Linear(WIDTH, WIDTH))

    def forward(self, ids):
        e = self.embeddings
        x = (
            e.word_embeddings(ids)
            + e.token_type_embeddings(torch.zeros_like(ids))
            + e.position_embeddings(e.position_ids[:, : ids.shape[1]])
        )
        x = e.LayerNorm(x)
        for layer in self.encoder.layer:
            x = layer(x)
        return torch.tanh(self.pooler.dense(x[:, 0]))


class Conv1D(nn.Module):
    """A linear layer whose weight stands the other way, as GPT-2 has it."""

    def __init__(self, nf, nx):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(nx, nf).normal_(std=0.02)), nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.ln_f = nn.Embedding(50, WIDTH), nn.Embedding(32, WIDTH), nn.LayerNorm(WIDTH)
        self.h = nn.ModuleList(
            holder(
                ln_1=nn.LayerNorm(WIDTH), attn=holder(c_attn=Conv1D(3 * WIDTH, WIDTH), c_proj=Conv1D(WIDTH, WIDTH)),
                ln_2=nn.LayerNorm(WIDTH), mlp=holder(c_fc=Conv1D(4 * WIDTH, WIDTH), c_proj=Conv1D(WIDTH, 4 * WIDTH)),
            )
            for _ in range(3)
        )  # fmt: skip

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = x + block.attn.c_proj(attend(*block.attn.c_attn(block.ln_1(x)).split(WIDTH, dim=2), causal=True))
            x = x + block.mlp.c_proj(F.gelu(block.mlp.c_fc(block.ln_2(x)), approximate="tanh"))
        return self.ln_f(x) @ self.wte.weight.t()


def rotate(x):
    angles = torch.outer(torch.arange(x.shape[1]).float(), 10000.0 ** (-torch.arange(0, 16, 2).float() / 16))
    angles = torch.cat([angles, angles], dim=-1).repeat(1, x.shape[2] // 16)
    parts = x.view(*x.shape[:2], -1, 2, 8)
    return x * angles.cos() + torch.stack([-parts[..., 1, :], parts[..., 0, :]], dim=-2).flatten(2) * angles.sin()


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        norm, heads = (
            (lambda: nn.RMSNorm(WIDTH, eps=1e-6)),
            {"q_proj": WIDTH, "k_proj": WIDTH // 2, "v_proj": WIDTH // 2, "o_proj": WIDTH},
        )
        self.model = holder(
            embed_tokens=nn.Embedding(50, WIDTH), norm=norm(),
            layers=nn.ModuleList(
                holder(
                    self_attn=holder(**{name: nn.Linear(WIDTH, size, bias=False) for name, size in heads.items()}),
                    mlp=holder(
                        gate_proj=nn.Linear(WIDTH, 128, bias=False), up_proj=nn.Linear(WIDTH, 128, bias=False),
                        down_proj=nn.Linear(128, WIDTH, bias=False),
                    ),
                    input_layernorm=norm(), post_attention_layernorm=norm(),
                )
                for _ in range(3)
            ),
        )  # fmt: skip
        self.lm_head = nn.Linear(WIDTH, 50, bias=False)

    def forward(self, ids):
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            own, y = layer.self_attn, layer.input_layernorm(x)
            q, k, v = rotate(own.q_proj(y)), rotate(own.k_proj(y)), own.v_proj(y)
            k, v = (t.view(*t.shape[:2], 2, 1, 16).expand(-1, -1, -1, 2, -1).flatten(2) for t in (k, v))  # two heads share a key
            x = x + own.o_proj(attend(q, k, v, causal=True))
            y = layer.post_attention_layernorm(x)
            x = x + layer.mlp.down_proj(F.silu(layer.mlp.gate_proj(y)) * layer.mlp.up_proj(y))
        return self.lm_head(self.model.norm(x))


class WhisperBlock(nn.Module):
    def __init__(self, cross):
        super().__init__()
        for name in ("self_attn", "encoder_attn") if cross else ("self_attn",):
            setattr(
                self,
                name,
                holder(**{p: nn.Linear(WIDTH, WIDTH, bias=p != "k_proj") for p in ("k_proj", "v_proj", "q_proj", "out_proj")}),
            )
            setattr(self, f"{name}_layer_norm", nn.LayerNorm(WIDTH))
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(WIDTH, 128), nn.Linear(128, WIDTH), nn.LayerNorm(WIDTH)

    def attention(self, name, x, other=None):
        own, y = getattr(self, name), getattr(self, f"{name}_layer_norm")(x)
        z = y if other is None else other
        return x + own.out_proj(
            attend(own.q_proj(y), own.k_proj(z), own.v_proj(z), causal=hasattr(self, "encoder_attn") and other is None)
        )

    def forward(self, x, other=None):
        x = self.attention("self_attn", x)
        if other is not None:
            x = self.attention("encoder_attn", x, other)
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = holder(
            conv1=nn.Conv1d(16, WIDTH, 3, padding=1), conv2=nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1),
            embed_positions=nn.Embedding(20, WIDTH), layers=nn.ModuleList(WhisperBlock(False) for _ in range(2)),
            layer_norm=nn.LayerNorm(WIDTH),
        )  # fmt: skip
        self.decoder = holder(
            embed_tokens=nn.Embedding(50, WIDTH), embed_positions=nn.Embedding(20, WIDTH),
            layers=nn.ModuleList(WhisperBlock(True) for _ in range(2)), layer_norm=nn.LayerNorm(WIDTH),
        )  # fmt: skip

    def forward(self, sound, ids):
        e, d = self.encoder, self.decoder
        x = F.gelu(e.conv2(F.gelu(e.conv1(sound)))).permute(0, 2, 1) + e.embed_positions.weight
        for layer in e.layers:
            x = layer(x)
        heard = e.layer_norm(x)
        y = d.embed_tokens(ids) + d.embed_positions.weight[: ids.shape[1]]
        for layer in d.layers:
            y = layer(y, heard)
        return d.layer_norm(y) @ d.embed_tokens.weight.t()


IMAGE, TEXT, SOUND = ("image",), ("text",), ("sound", "text")
MODELS = {"ResNet": IMAGE, "ViT": IMAGE, "Bert": TEXT, "GPT2": TEXT, "Llama": TEXT, "Whisper": SOUND}
