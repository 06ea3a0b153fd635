"""The models of the HTTP contract, used by the SDK and the service alike."""

from aftercall.models.base import *
from aftercall.models.calls import *
from aftercall.models.health import *
from aftercall.models.hooks import *
from aftercall.models.keys import *
from aftercall.models.statistics import *
from aftercall.models.tools import *
